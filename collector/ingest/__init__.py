"""Ingest: exports are admitted, decoded, and written by one thread."""
