"""The running collector: the application, its HTTP and gRPC servers, and its upkeep."""
