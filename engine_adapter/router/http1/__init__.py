"""HTTP/1.1 as the router speaks it: with clients, and with engines."""
