"""Conversations that a draft predicts badly, as data to retrain it from."""
