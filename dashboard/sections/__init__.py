"""The sections of a rollout's page, one module per subject."""
