"""Evaluators, statistics and the release gate: numbers are made here, and nowhere else."""
