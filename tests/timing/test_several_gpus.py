"""One repetition on several GPUs: how busy each of them was is told."""

from __future__ import annotations

from pathlib import Path

from nsysmap.answer.summarize import summarize
from nsysmap.api import analyze
from tests.nsys_file import NsysFile

US = 1000


def test_a_gpu_that_runs_a_part_of_each_repetition_has_its_busy_share(tmp_path: Path) -> None:
    """Both GPUs compute, one exchanges the borders: its last kernel takes as long again."""
    file, now, correlation = NsysFile(), 1000, 0
    for _ in range(30):
        for device, name, took in ((0, "split", 400), (1, "split", 400), (0, "exchange", 400)):
            correlation += 1
            file.call("cudaLaunchKernel_v7000", now, now + US, correlation)
            at = now + 2 * US + (400 * US if name == "exchange" else 0)
            file.kernel(name, at, correlation, took=took * US)
            row = file.rows["CUPTI_ACTIVITY_KIND_KERNEL"][-1]
            row["deviceId"], row["contextId"] = device, 1 + device
            now += 2 * US
        done = now + 800 * US
        file.call("cudaDeviceSynchronize_v3020", now, done, 10**6 + now)
        now = done + 10 * US
    tables = analyze(file.write(tmp_path / "x.sqlite"), rules=[]).tables.by_name()
    answer = summarize(tables)
    assert answer.traced is not None and 800 * US < answer.traced.ns < 830 * US
    shares = {gpu.device: round(gpu.busy_share or 0.0, 1) for gpu in answer.gpus}
    assert shares == {0: 1.0, 1: 0.5}
    counted = {row.integer("device"): row.integer("inferences") for row in tables["device_times"]}
    assert counted[0] > 0 and counted[1] == 0
    assert [gpu.device for gpu in answer.machine_gpus] == [0, 1]
