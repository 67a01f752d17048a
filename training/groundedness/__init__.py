"""Train the groundedness model, and measure it by cross-fitting."""
