"""The dashboard: shows the collector's data and the gate's decisions; it computes no numbers."""
