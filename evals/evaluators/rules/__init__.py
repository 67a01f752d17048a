"""The rules of task completion, one file a family; each says what is wrong, or that nothing is."""
