"""The demo on a real model: SmolLM2-135M-Instruct on llama.cpp, with and without n-gram drafts."""
