"""Rollups: aggregates of generations by rollout, arm, cohort and time."""
