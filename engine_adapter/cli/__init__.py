"""`draftgate run`, `check`, `sweep`, and the router's commands: one file a command."""
