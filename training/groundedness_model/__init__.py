"""Fine-tune the network from MiniLM, and measure it by cross-fitting."""
