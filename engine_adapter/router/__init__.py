"""The router: a reverse proxy that mirrors, splits or switches off a candidate's traffic."""
