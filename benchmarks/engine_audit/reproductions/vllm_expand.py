"""vLLM on a CPU without Triton: per-request temperatures never reach the drafted positions.

Run by the interpreter of an environment with vLLM; neither a model nor Draftgate takes part.
`expand_batch_to_tokens` shall repeat each request's temperature (or top-k) for its draft tokens.
"""

import torch
from vllm.platforms import current_platform
from vllm.v1.sample import rejection_sampler

current_platform.import_kernels()
if current_platform.register_triton_kernel_overrides is not None:
    current_platform.register_triton_kernel_overrides()
else:  # before 0.31
    from vllm.utils import cpu_triton_utils

    rejection_sampler.expand_kernel = cpu_triton_utils.expand_kernel


def main() -> None:
    """Print the wanted beside the returned tokens, for a greedy request and a sampled one."""
    drafts = torch.tensor([4, 8], dtype=torch.int32)  # cumulative: four for each of two requests
    _show("temperature", torch.tensor([0.0, 0.7]), drafts, replace_to=1)
    _show("top_k", torch.tensor([20, 5], dtype=torch.int32), drafts)


def _show(name: str, values: torch.Tensor, drafts: torch.Tensor, replace_to: int = 0) -> None:
    found = rejection_sampler.expand_batch_to_tokens(values, drafts, 8, 0, replace_to)
    wanted = torch.where(values == 0, replace_to, values).repeat_interleave(4)
    print(f"{name}: wanted {[round(value, 3) for value in wanted.tolist()]}")
    print(f"{' ' * len(name)}  found  {[round(value, 3) for value in found.tolist()]}")


if __name__ == "__main__":
    main()
