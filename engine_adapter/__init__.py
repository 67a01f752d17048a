"""The engine adapter: runs generations on engines and emits them as OpenTelemetry spans."""
