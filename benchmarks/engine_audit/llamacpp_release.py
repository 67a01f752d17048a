"""Serve a GGUF file by the llama.cpp of any `xllamacpp` from 2026.4 on.

Run by the interpreter of the release's environment. The binding's names changed between releases;
where both are offered the newer one is set.
"""

import argparse
import signal

import xllamacpp

_NGRAM_SIMPLE = 3
"""Of llama.cpp's `common_speculative_type` in b8929; that binding does not name it."""


def main() -> None:
    """Read the command line and serve until stopped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--draft", help="GGUF file of a draft model")
    parser.add_argument("--ngram", type=int, help="tokens that must match for a draft")
    parser.add_argument("--draft-tokens", type=int, default=4)
    given = parser.parse_args()
    params = xllamacpp.CommonParams()
    params.model.path = given.model
    params.n_parallel, params.n_ctx = 4, 4 * 1024
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.endpoint_metrics = params.endpoint_slots = True
    params.cache_prompt = False
    params.port = given.port
    if hasattr(params, "hostnames"):
        params.hostnames = ["127.0.0.1"]
    else:
        params.hostname = "127.0.0.1"
    params.model_alias = {"served"}
    if given.draft is not None:
        _draft_model(params.speculative, given.draft, given.draft_tokens)
    elif given.ngram is not None:
        _ngrams(params.speculative, given.ngram, given.draft_tokens)
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    signal.pause()


def _draft_model(speculative: "xllamacpp.CommonParamsSpeculative", path: str, k: int) -> None:
    kinds = xllamacpp.common_speculative_type
    if hasattr(speculative, "draft"):
        speculative.types = [kinds.COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE]
        draft, speculative.draft.mparams.path = speculative.draft, path
    else:
        speculative.type = kinds.COMMON_SPECULATIVE_TYPE_DRAFT
        draft, speculative.mparams_dft.path = speculative, path
    draft.n_max = k
    draft.cpuparams.n_threads = draft.cpuparams_batch.n_threads = 1


def _ngrams(speculative: "xllamacpp.CommonParamsSpeculative", size: int, k: int) -> None:
    if hasattr(speculative, "ngram_simple"):
        kinds = xllamacpp.common_speculative_type
        speculative.types = [kinds.COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE]
        speculative.ngram_simple.size_n, speculative.ngram_simple.size_m = size, k
    else:
        speculative.type = _NGRAM_SIMPLE
        speculative.ngram_size_n, speculative.ngram_size_m = size, k


if __name__ == "__main__":
    main()
