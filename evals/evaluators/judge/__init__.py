"""A language model as judge, behind any OpenAI-compatible chat completions endpoint."""
