"""What evidence advice needs, and what a change must bring."""

MIN_PROMPTS = 30
"""Prompts below which a scope gets no advice: as many as the gate's geometric mean needs."""
MIN_STEPS = 100
"""Verify steps below which nothing is advised of another k."""
MIN_GAIN = 0.02
"""What a change must bring at worst."""
