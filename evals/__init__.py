"""Evaluators, statistics and the release gate: the only place that computes numbers."""
