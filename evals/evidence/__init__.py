"""The evidence of a rollout: its pairs as columns, and what is counted on them."""
