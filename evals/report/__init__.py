"""Verdicts as text: for terminals, Markdown, CI; ordered and worded for readers."""
