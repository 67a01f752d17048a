"""Parts of benchmarks/client.py: who measures, and what is held against what."""
