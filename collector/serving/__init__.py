"""A collector that runs: the application, its HTTP and gRPC servers, and its upkeep."""
