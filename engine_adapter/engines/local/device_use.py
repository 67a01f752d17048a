"""Read a loop's device memory and its GPU's utilisation, power and clock after an answer."""

import torch

from collector.contract import DeviceUse
from engine_adapter.engines.gpu_samples import Gpu, GpuReader
from engine_adapter.engines.local.records import Memory


class DeviceMeter:
    """Reads one device, a GPU through NVML if available. Use from one thread."""

    def __init__(self, uuid: str | None, reader: GpuReader | None = None) -> None:
        """Take the GPU's UUID, with or without `GPU-`; `None` if the device is not a GPU."""
        self._uuid = uuid
        self._reader = reader or GpuReader()
        self._gpu: Gpu | None = None
        self._opened = False

    @classmethod
    def of(cls, device: torch.device) -> "DeviceMeter":
        """Return the meter of a torch device; NVML is opened at the first reading."""
        if device.type != "cuda":
            return cls(None)
        return cls(str(torch.cuda.get_device_properties(device).uuid))

    def use(self, memory: Memory) -> DeviceUse:
        """Return the memory held and the GPU's current state; unreported values are absent."""
        found = self._gpu_now()
        return DeviceUse(
            **memory._asdict(),
            gpu_utilization_pct=found.get("DCGM_FI_DEV_GPU_UTIL"),
            gpu_power_w=found.get("DCGM_FI_DEV_POWER_USAGE"),
            gpu_clock_mhz=found.get("DCGM_FI_DEV_SM_CLOCK"),
        )

    def close(self) -> None:
        """Close NVML; safe to call twice."""
        self._reader.close()
        self._gpu = None

    def _gpu_now(self) -> dict[str, float]:
        if self._uuid is None:
            return {}
        if not self._opened:
            self._opened = True
            self._reader.open()
            name = self._uuid.removeprefix("GPU-")
            known = {gpu.instance.removeprefix("GPU-"): gpu for gpu in self._reader.gpus}
            self._gpu = known.get(name)
        if self._gpu is None:
            return {}
        return {one.metric.name: one.value for one in self._reader.of(self._gpu)}
