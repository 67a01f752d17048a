"""The collector's commands."""
