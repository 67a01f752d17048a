"""Parts of benchmarks/client.py: the measuring processes, and the comparison with the truth."""
