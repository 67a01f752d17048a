"""Metrics of other packages as evaluators: `ragas:METRIC`, `deepeval:METRIC`, `phoenix:METRIC`."""
