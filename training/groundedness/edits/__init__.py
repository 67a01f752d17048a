"""Answers edited in one place: harmless edits, which say the same, and harmful ones."""
