"""Labelled answers, judged by models that never saw them."""
