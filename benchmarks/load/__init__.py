"""Load generation: span bodies, senders, and the servers under test."""
