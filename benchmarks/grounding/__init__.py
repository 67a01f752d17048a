"""Labelled answers, judged by models that were not trained on them."""
