"""A run of a rollout file: its schedule, the replay, and the spans that it sends."""
