"""How an answer breaks when an engine errs, one file a failure; each says what it saw."""
