"""The hottest of processor and graphics cards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import psutil

from app.desktop.facts.facts import ABSENT, Absent, SourceError
from app.desktop.nvidia.gpu import Nvml

PROCESSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "cpu-thermal", "soc_thermal", "x86_pkg_temp")
"""Drivers that measure the processor (Intel, AMD twice, boards with ARM). Others measure disks and radios,
whose limits are others."""
_POSSIBLE_C = range(1, 131)
"""Broken sensors say 0, -128 or 255."""


class Temperature:
    name = "temperature of processor and NVIDIA cards"

    def __init__(self, nvml: Nvml) -> None:
        self._nvml = nvml

    def read(self) -> float | Absent:
        """Degrees Celsius. Raises SourceError where a graphics card stops answering."""
        sensors: dict[str, Any] = getattr(psutil, "sensors_temperatures", dict)()  # Linux and FreeBSD alone
        found = processor_c(sensors) + self._cards_c()
        return max(found) if found else ABSENT

    def _cards_c(self) -> list[float]:
        cards, library = self._nvml.opened()
        if not cards:
            return []
        try:
            return [
                float(library.nvmlDeviceGetTemperature(card, library.NVML_TEMPERATURE_GPU)) for card in cards
            ]
        except library.NVMLError as error:
            if not self._nvml.opened()[0]:
                return []  # closed while we asked, to let the cards sleep
            raise SourceError(f"The graphics card's driver doesn't answer ({error}).") from error


def processor_c(sensors: Mapping[str, Iterable[Any]]) -> list[float]:
    """The plausible readings of the processor's sensors."""
    readings = [reading.current for name in PROCESSORS for reading in sensors.get(name, ())]
    return [float(value) for value in readings if value is not None and int(value) in _POSSIBLE_C]
