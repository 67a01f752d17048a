"""What this machine's GPUs say of themselves, through NVML, into the collector."""
# ruff: noqa: N802  # NVML's own names

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest
from metric_samples import sampled

from collector.client import Client
from collector.otlp.engine_metrics import is_engine_metric
from engine_adapter.engines.gpu_samples import METRICS, GpuReader, installed_nvml
from engine_adapter.engines.local.device_use import DeviceMeter
from engine_adapter.engines.local.records import Memory
from engine_adapter.run.engine_samples import SampleTally

MIB = 2**20


class TwoGpus:
    """Stands for the module pynvml on a machine with two GPUs; the second one says little."""

    NVMLError = pynvml.NVMLError
    NVML_CLOCK_SM = pynvml.NVML_CLOCK_SM
    NVML_TEMPERATURE_GPU = pynvml.NVML_TEMPERATURE_GPU

    def __init__(self) -> None:
        self.opened = 0
        self.lost: set[int] = set()

    def nvmlInit(self) -> None:
        self.opened += 1

    def nvmlShutdown(self) -> None:
        self.opened -= 1

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return self.known(index, index)

    def nvmlDeviceGetUUID(self, gpu: int) -> str:
        return self.known(gpu, f"GPU-{gpu}")

    def nvmlDeviceGetName(self, gpu: int) -> str:
        return self.known(gpu, "NVIDIA H100")

    def nvmlDeviceGetUtilizationRates(self, gpu: int) -> Any:
        return self.known(gpu, SimpleNamespace(gpu=0, memory=7), partitioned=1)

    def nvmlDeviceGetMemoryInfo(self, gpu: int) -> Any:
        memory = SimpleNamespace(total=80 * 1024 * MIB, used=3 * MIB // 2, free=0)
        return self.known(gpu, memory, partitioned=1)

    def nvmlDeviceGetPowerUsage(self, gpu: int) -> int:
        return self.known(gpu, 312_500, partitioned=1)

    def nvmlDeviceGetClockInfo(self, gpu: int, clock: int) -> int:
        assert clock == self.NVML_CLOCK_SM
        return self.known(gpu, 1980, partitioned=1)

    def nvmlDeviceGetTemperature(self, gpu: int, sensor: int) -> int:
        assert sensor == self.NVML_TEMPERATURE_GPU
        return self.known(gpu, 41)

    def known(self, gpu: int, value: Any, *, partitioned: int | None = None) -> Any:
        if self.opened < 1:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_UNINITIALIZED)
        if gpu in self.lost:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        if gpu == partitioned:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return value


def has_gpu() -> bool:
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return False
    count = pynvml.nvmlDeviceGetCount()
    pynvml.nvmlShutdown()
    return bool(count)


@contextmanager
def opened(nvml: Any) -> Iterator[GpuReader]:
    reader = GpuReader(lambda: nvml)
    reader.open()
    try:
        yield reader
    finally:
        reader.close()


@pytest.mark.parametrize(("uuid", "power_w"), [("0", 312.5), ("GPU-0", 312.5), ("1", None)])
def test_an_answer_tells_of_its_own_gpu(uuid: str, power_w: float | None) -> None:
    """By its UUID, whichever number it has; a partitioned one says less, and no zero for it."""
    nvml = TwoGpus()
    meter = DeviceMeter(uuid, GpuReader(lambda: nvml))
    assert nvml.opened == 0
    use = meter.use(Memory(10, 2, 30, 4))
    assert (use.gpu_power_w, use.gpu_clock_mhz) == (power_w, power_w and 1980)
    assert use.gpu_utilization_pct == (None if power_w is None else 0)
    assert (use.weight_bytes, use.draft_weight_bytes) == (10, 2)
    assert (use.cache_bytes, use.draft_cache_bytes) == (30, 4)
    meter.close()
    meter.close()
    assert nvml.opened == 0


@pytest.mark.parametrize("uuid", [None, "another machine's"])
def test_without_its_gpu_an_answer_tells_of_memory_alone(uuid: str | None) -> None:
    """On a CPU, and where NVML does not show the GPU that torch uses."""
    meter = DeviceMeter(uuid, GpuReader(TwoGpus))
    use = meter.use(Memory(10, 0, 30, 0))
    assert (use.gpu_utilization_pct, use.gpu_power_w, use.gpu_clock_mhz) == (None, None, None)
    assert use.weight_bytes == 10
    meter.close()


@pytest.mark.parametrize("make", [TwoGpus, installed_nvml], ids=["fake", "real"])
def test_what_a_gpu_says_is_possible(make: Any) -> None:
    """Each GPU says something, under names that the collector keeps, within what a GPU can be."""
    if make is installed_nvml and not has_gpu():
        pytest.skip("no NVIDIA GPU here")
    with opened(make()) as reader:
        readings = reader.read()
        assert {reading.gpu.instance for reading in readings} == {
            gpu.instance for gpu in reader.gpus
        }
    by_gpu: dict[str, dict[str, float]] = {}
    for reading in readings:
        assert is_engine_metric(reading.metric.name)
        assert reading.gpu.labels["UUID"] == reading.gpu.instance
        assert reading.gpu.instance.startswith("GPU-")
        by_gpu.setdefault(reading.gpu.labels["gpu"], {})[reading.metric.name] = reading.value
    for said in by_gpu.values():
        assert 0 <= said.get("DCGM_FI_DEV_GPU_UTIL", 0) <= 100
        assert 0 <= said.get("DCGM_FI_DEV_FB_USED", 0) <= said.get("DCGM_FI_DEV_FB_TOTAL", 0)
        assert 0 < said.get("DCGM_FI_DEV_POWER_USAGE", 1) < 10_000
        assert 0 < said.get("DCGM_FI_DEV_SM_CLOCK", 1) < 10_000
        assert 0 < said.get("DCGM_FI_DEV_GPU_TEMP", 1) < 150


def test_a_gpus_values_have_dcgms_units_and_what_it_does_not_say_is_absent() -> None:
    """MiB, W, MHz, °C, and an idle GPU's 0 %; of a GPU that says its temperature alone, that."""
    nvml = TwoGpus()
    with opened(nvml) as reader:
        said = [(r.gpu.labels["gpu"], r.metric.name, r.value) for r in reader.read()]
        assert nvml.opened == 1
    assert nvml.opened == 0
    assert said == [
        ("0", "DCGM_FI_DEV_GPU_UTIL", 0.0),
        ("0", "DCGM_FI_DEV_FB_USED", 1.5),
        ("0", "DCGM_FI_DEV_FB_TOTAL", 81_920.0),
        ("0", "DCGM_FI_DEV_POWER_USAGE", 312.5),
        ("0", "DCGM_FI_DEV_SM_CLOCK", 1980.0),
        ("0", "DCGM_FI_DEV_GPU_TEMP", 41.0),
        ("1", "DCGM_FI_DEV_GPU_TEMP", 41.0),
    ]


def test_a_gpu_that_is_lost_leaves_the_others() -> None:
    """Before the run it is not listed, during the run it says nothing more."""
    nvml = TwoGpus()
    nvml.lost = {0}
    with opened(nvml) as reader:
        assert [gpu.labels["gpu"] for gpu in reader.gpus] == ["1"]
    nvml.lost = set()
    with opened(nvml) as reader:
        nvml.lost = {0}
        assert [reading.gpu.labels["gpu"] for reading in reader.read()] == ["1"]


def test_each_gpu_is_an_instance_of_its_own_in_the_collector(url: str) -> None:
    """Stored by UUID, with index, model and rollout, and of no arm: both may use it."""
    nvml = TwoGpus()
    tally = sampled(url, gpus=GpuReader(lambda: nvml), at_least=14)
    assert tally.sent >= 14
    assert tally.failed == 0
    with Client(url) as client:
        stored = {
            metric.name: list(client.samples(metric.name, service_name="nvml"))
            for metric in METRICS
        }
    assert nvml.opened == 0
    assert {sample.instance for sample in stored["DCGM_FI_DEV_GPU_TEMP"]} == {"GPU-0", "GPU-1"}
    for metric in METRICS:
        first = stored[metric.name][0]
        assert (first.instance, first.unit, first.kind) == ("GPU-0", metric.unit, "gauge")
        labels = dict(first.attributes)
        assert labels.pop("Hostname")
        assert labels == {
            "gpu": "0",
            "UUID": "GPU-0",
            "modelName": "NVIDIA H100",
            "draftgate.rollout": "r",
        }


def test_a_collector_that_is_gone_is_counted_and_ends_nothing() -> None:
    """Readings that nobody takes are failed scrapes; the driver is let go of all the same."""
    nvml = TwoGpus()
    tally = sampled("http://127.0.0.1:1", gpus=GpuReader(lambda: nvml), at_least=2)
    assert (tally.sent, tally.failed >= 2, nvml.opened) == (0, True, 0)


@pytest.mark.skipif(has_gpu(), reason="an NVIDIA GPU is here")
def test_the_real_library_without_a_driver_gives_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """No samples, no failure, and one line that says why."""
    assert installed_nvml() is pynvml
    with caplog.at_level(logging.INFO, logger="engine_adapter"):
        assert sampled("http://127.0.0.1:1", gpus=GpuReader(), at_least=1) == SampleTally(0, 0)
    (record,) = caplog.records
    assert record.levelno == logging.INFO
    assert record.getMessage().startswith("GPUs are not sampled: ")


def test_without_the_library_nothing_is_sampled(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No samples, no failure, and one line that says what to install."""
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with caplog.at_level(logging.INFO, logger="engine_adapter"):
        assert sampled("http://127.0.0.1:1", gpus=GpuReader(), at_least=1) == SampleTally(0, 0)
    (record,) = caplog.records
    assert "pip install 'draftgate[gpu]'" in record.getMessage()
