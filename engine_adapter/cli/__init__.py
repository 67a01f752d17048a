"""`draftgate run`, `check`, `sweep`, and the router's commands: one module per command."""
