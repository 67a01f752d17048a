"""Scoring what a collector holds and nobody has scored yet."""
