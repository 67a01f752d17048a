"""A language model as judge, behind any endpoint that speaks OpenAI's chat completions."""
