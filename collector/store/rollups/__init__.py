"""Rollups: what many generations come to, by rollout, arm, cohort and time."""
