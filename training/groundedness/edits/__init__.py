"""Rules that edit an answer: harmless edits keep the meaning, harmful ones change it."""
