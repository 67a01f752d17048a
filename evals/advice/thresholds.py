"""The minimum evidence and the minimum gain for advice."""

MIN_PROMPTS = 30
"""A scope with fewer prompts gets no advice; the gate's geometric mean needs as many."""
MIN_STEPS = 100
"""With fewer verify steps, no other k is advised."""
MIN_GAIN = 0.02
"""The lower limit of a change's gain must exceed this."""
