"""The evaluation commands, one file a verb."""
