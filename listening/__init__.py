"""Code shared by the listeners of the collector and the router."""
