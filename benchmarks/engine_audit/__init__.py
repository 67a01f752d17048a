"""An audit of serving engines over their releases, for faults of speculation."""
