"""Attacks on the collector, the router and the client, each with its bound."""
