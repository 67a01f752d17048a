"""Parts of the router benchmarks: proxies in processes, and a cheap load generator."""
