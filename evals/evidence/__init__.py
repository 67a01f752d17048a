"""The evidence of a rollout: its pairs as columns, and counts of them."""
