"""The demo: a tiny support desk, two models trained on it, and three candidates to judge."""
