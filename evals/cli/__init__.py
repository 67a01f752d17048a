"""The evaluation commands, one file per command."""
