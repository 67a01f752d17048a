"""Simulated rollouts: their laws, and how often methods and the whole gate decide on them."""
