"""Figures of the window: `python tests/ui/measure.py HOME` prints one JSON object. HOME may hold a history;
nothing is started. Linux only. The first frame counts from the start of this very process; memory is what the
system counts, in MB."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import psutil

PANS = 60


def main(home: Path) -> None:
    process = psutil.Process()
    ticks = float(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    born = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / os.sysconf("SC_CLK_TCK")
    from PySide6.QtWidgets import QApplication

    application = QApplication([])
    from app.ui.start import Desktop

    desktop = Desktop(application, home, "light")
    desktop.window.show()
    application.processEvents()
    first = time.time() - born
    used = sum(process.cpu_times()[:2])
    desktop.control._recall()
    _pass(2.0)
    memory = process.memory_info().rss / 1e6
    before, began = sum(process.cpu_times()[:2]), time.time()
    _pass(5.0)
    idle = (sum(process.cpu_times()[:2]) - before) / (time.time() - began)
    from app.ui.widgets.chart import Chart

    chart = Chart(desktop.theme)
    chart.resize(960, 320)
    chart.show()
    application.processEvents()
    chart.show_series([(float(at), (at * 7919 % 1000) / 1000, 0.03) for at in range(100_000)])
    frames = []
    for at in range(PANS):
        start = time.perf_counter()
        chart.show_range(at * 200, at * 200 + 80_000)
        chart.repaint()
        frames.append(time.perf_counter() - start)
    print(
        json.dumps(
            dict(
                first_frame_s=round(first, 2),
                first_frame_cpu_s=round(used, 2),
                window_mb=round(memory),
                paused_cpu_percent=round(100 * idle, 2),
                pan_worst_ms=round(1000 * max(frames), 1),
                pan_median_ms=round(1000 * sorted(frames)[PANS // 2], 1),
            )
        )
    )


def _pass(seconds: float) -> None:
    from PySide6.QtCore import QEventLoop, QTimer

    loop = QEventLoop()
    QTimer.singleShot(int(seconds * 1000), loop.quit)
    loop.exec()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
