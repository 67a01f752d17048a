"""Sign bundles, and check signatures: in-toto statements in DSSE envelopes."""
