"""The router: a reverse proxy that mirrors, splits and switches off a candidate's traffic."""
