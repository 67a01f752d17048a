"""Sample this machine's NVIDIA GPUs through NVML, NVIDIA's management library.

Metrics have the names, units and labels of NVIDIA's DCGM exporter, so that a chart can draw either.
Values that a GPU does not report are absent: many report no power, and partitioned ones (MIG) no
utilisation.
"""

import logging
import platform
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any, Final, NamedTuple

Nvml = Any  # Any: the module pynvml or a stand-in; it has no types
Handle = Any  # Any: NVML's handle of a GPU, a pointer

_log = logging.getLogger(__name__)
_MIB: Final = 2**20


class GpuQuantity(NamedTuple):
    """One quantity of a GPU."""

    name: str
    unit: str
    read: Callable[[Nvml, Handle], float]
    """Raises `NVMLError` if the GPU does not report it."""


METRICS: Final = (
    GpuQuantity(
        "DCGM_FI_DEV_GPU_UTIL", "%", lambda m, gpu: m.nvmlDeviceGetUtilizationRates(gpu).gpu
    ),
    GpuQuantity(
        "DCGM_FI_DEV_FB_USED", "MiBy", lambda m, gpu: m.nvmlDeviceGetMemoryInfo(gpu).used / _MIB
    ),
    GpuQuantity(
        "DCGM_FI_DEV_FB_TOTAL", "MiBy", lambda m, gpu: m.nvmlDeviceGetMemoryInfo(gpu).total / _MIB
    ),
    GpuQuantity(
        "DCGM_FI_DEV_POWER_USAGE", "W", lambda m, gpu: m.nvmlDeviceGetPowerUsage(gpu) / 1000
    ),
    GpuQuantity(
        "DCGM_FI_DEV_SM_CLOCK", "MHz", lambda m, gpu: m.nvmlDeviceGetClockInfo(gpu, m.NVML_CLOCK_SM)
    ),
    GpuQuantity(
        "DCGM_FI_DEV_GPU_TEMP",
        "Cel",
        lambda m, gpu: m.nvmlDeviceGetTemperature(gpu, m.NVML_TEMPERATURE_GPU),
    ),
)


class Gpu(NamedTuple):
    """One GPU of this machine."""

    handle: Handle
    instance: str
    """Its UUID, else the machine's name and its index."""
    labels: dict[str, str]


class GpuReading(NamedTuple):
    """One value of one GPU."""

    gpu: Gpu
    metric: GpuQuantity
    value: float


def installed_nvml() -> Nvml | None:
    """Return the module `pynvml`; `None` if the extra `gpu` is not installed."""
    try:
        return import_module("pynvml")
    except ModuleNotFoundError:
        return None


class GpuReader:
    """Reads GPUs between `open` and `close`; call all methods from one thread."""

    def __init__(self, find: Callable[[], Nvml | None] = installed_nvml) -> None:
        self.gpus: tuple[Gpu, ...] = ()
        self._find = find
        self._nvml: Nvml | None = None

    def open(self) -> None:
        """Find the GPUs; if none can be read, log why and leave `gpus` empty."""
        nvml = self._find()
        if nvml is None:
            _log.info(
                "GPUs are not sampled: nvidia-ml-py is not installed; "
                "`pip install 'draftgate[gpu]'` does"
            )
            return
        try:
            nvml.nvmlInit()
            self._nvml = nvml
            count = nvml.nvmlDeviceGetCount()
        except nvml.NVMLError as exc:
            _log.info("GPUs are not sampled: %s", exc)
            return
        found = (self._gpu(index) for index in range(count))
        self.gpus = tuple(gpu for gpu in found if gpu is not None)
        if not self.gpus:
            _log.info("GPUs are not sampled: NVML shows none of this machine's")

    def read(self) -> list[GpuReading]:
        """Return the current readings of all GPUs."""
        return [reading for gpu in self.gpus for reading in self.of(gpu)]

    def of(self, gpu: Gpu) -> list[GpuReading]:
        """Return the current readings of one GPU."""
        return [
            GpuReading(gpu, metric, float(value))
            for metric in METRICS
            if (value := self._said(metric.read, gpu.handle)) is not None
        ]

    def close(self) -> None:
        """Shut NVML down; safe to call twice."""
        if self._nvml is not None:
            with suppress(self._nvml.NVMLError):
                self._nvml.nvmlShutdown()
        self._nvml, self.gpus = None, ()

    def _gpu(self, index: int) -> Gpu | None:
        """Return the GPU with this index; `None` if NVML gives no handle for it."""
        handle = self._said(lambda nvml, number: nvml.nvmlDeviceGetHandleByIndex(number), index)
        if handle is None:
            return None
        uuid = self._said(lambda nvml, gpu: nvml.nvmlDeviceGetUUID(gpu), handle)
        model = self._said(lambda nvml, gpu: nvml.nvmlDeviceGetName(gpu), handle)
        machine = platform.node()
        labels = {"gpu": str(index), "UUID": uuid, "modelName": model, "Hostname": machine or None}
        said = {key: text for key, text in labels.items() if text is not None}
        return Gpu(handle, uuid or f"{machine}/{index}", said)

    def _said(self, ask: Callable[[Nvml, Any], Any], of: Any) -> Any:  # Any: NVML has no types
        """Return the result of an NVML call; `None` if it raises `NVMLError`."""
        nvml = self._nvml
        if nvml is None:
            return None
        try:
            return ask(nvml, of)
        except nvml.NVMLError:
            return None
