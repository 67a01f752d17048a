"""Load: span bodies, who sends them, and the servers that take them."""
