"""vLLM 0.30.0 on a CPU without Triton verifies no draft token, whatever proposed it.

Run by the interpreter of an environment with 0.29.0 or 0.30.0; neither a model nor Draftgate takes
part. Two draft tokens of a greedy request are verified with the kernel of the CPU's worker.
"""

from types import SimpleNamespace

import torch
from vllm.platforms import current_platform
from vllm.utils import cpu_triton_utils
from vllm.v1.sample import rejection_sampler

current_platform.import_kernels()
# As the worker does; in 0.30.0 the sampler keeps the kernel that it was imported with.
rejection_sampler.rejection_greedy_sample_kernel = cpu_triton_utils.rejection_greedy_sample_kernel


def main() -> None:
    """Print the tokens that are kept, or end with the error."""
    draft = torch.tensor([5, 6], dtype=torch.int32)
    kept = rejection_sampler.rejection_sample(
        draft, [2], 2, torch.tensor([2], dtype=torch.int32), None, torch.eye(8)[draft.long()],
        torch.tensor([[7]], dtype=torch.int32), SimpleNamespace(all_greedy=True, all_random=False),
    )  # fmt: skip
    print(f"wanted [5, 6, 7], found {kept[0].tolist()}")


if __name__ == "__main__":
    main()
