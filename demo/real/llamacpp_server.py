"""Serve a GGUF file by llama.cpp's own HTTP server, which `xllamacpp` brings prebuilt.

With `--port` it serves until it is stopped; without, on a free port, until its standard input is
closed. It prints its URL.
"""

import argparse
import signal
import sys

import xllamacpp

_CONTEXT_TOKENS = 2048


def main() -> None:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--draft", help="GGUF file of a draft model")
    parser.add_argument("--draft-tokens", type=int, default=4)
    parser.add_argument("--ngram", type=int, help="tokens that must match for a draft")
    parser.add_argument("--slots", type=int, default=1, help="requests at a time")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--port", type=int, default=0)
    arguments = parser.parse_args()
    server = xllamacpp.Server(_parameters(arguments))
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    if arguments.port:
        signal.pause()
    sys.stdin.read()


def _parameters(arguments: argparse.Namespace) -> xllamacpp.CommonParams:
    kinds = xllamacpp.common_speculative_type
    params = xllamacpp.CommonParams()
    params.model.path = arguments.model
    params.model_alias = {"served"}
    params.n_parallel = arguments.slots
    params.n_ctx = _CONTEXT_TOKENS * arguments.slots
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = arguments.threads
    params.endpoint_metrics = params.endpoint_slots = True
    params.cache_prompt = False
    params.hostnames = ["127.0.0.1"]
    params.port = arguments.port
    if arguments.draft is not None:
        draft = params.speculative.draft
        params.speculative.types = [kinds.COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE]
        draft.mparams.path = arguments.draft
        draft.n_max = arguments.draft_tokens
        draft.cpuparams.n_threads = draft.cpuparams_batch.n_threads = arguments.threads
    elif arguments.ngram is not None:
        params.speculative.types = [kinds.COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE]
        params.speculative.ngram_simple.size_n = arguments.ngram
        params.speculative.ngram_simple.size_m = arguments.draft_tokens
    return params


if __name__ == "__main__":
    main()
