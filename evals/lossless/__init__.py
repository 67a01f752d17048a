"""Whether speculation changed what is said: greedy answers token by token, samples by e-values."""
