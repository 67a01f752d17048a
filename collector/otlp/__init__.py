"""OTLP, decoded: bodies of spans, log records, and metrics to what the collector stores."""
