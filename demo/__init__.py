"""The demo: a tiny support desk, a pair of models trained on it, and three candidates to judge."""
