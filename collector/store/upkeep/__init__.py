"""Work in the background: leases, removal of old data, regressions, checks of rollups."""
