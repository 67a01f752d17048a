"""Attacks on the collector, the router and the client, each with a bound on its effect."""
