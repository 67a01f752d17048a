"""The dashboard: shows what the collector holds and the gate decided, and makes no number."""
