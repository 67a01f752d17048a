"""Checks for damage that engine errors do to answers; each returns what it found, or None."""
