"""The samples that a run takes of metrics pages and GPUs, without the run."""

import asyncio
import time

from engine_adapter.engines.gpu_samples import GpuReader
from engine_adapter.run.engine_samples import EngineSampler, MetricsPage, SampleTally


def sampled(collector_url: str, *pages: MetricsPage, gpus: GpuReader, at_least: int) -> SampleTally:
    """Sample until so much was sent or failed, or there is nothing to sample."""

    async def sample() -> SampleTally:
        sampler = EngineSampler(
            pages, rollout="r", collector_url=collector_url, every_s=0.01, gpus=gpus
        )
        deadline = time.monotonic() + 60
        async with sampler:
            wanted = at_least if pages or gpus.gpus else 0
            while sum(sampler.tally) < wanted and time.monotonic() < deadline:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        return sampler.tally

    return asyncio.run(sample())
