"""Speculative decoding's counts on vLLM's own OpenTelemetry spans."""
