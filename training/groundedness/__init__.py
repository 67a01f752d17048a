"""How the groundedness model was made, and how it is measured without training on the measured."""
