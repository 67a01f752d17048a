"""How the network was fine-tuned from MiniLM, and how it is measured without its own answers."""
