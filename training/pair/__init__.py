"""Trains the demo's pair of models: a tokenizer, a draft, and a target grown from the draft."""
