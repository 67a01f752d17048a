"""OTLP decoding: bodies of spans, log records and metrics to the collector's records."""
