"""Policies, verdicts, decisions, and the traffic that follows from them."""
