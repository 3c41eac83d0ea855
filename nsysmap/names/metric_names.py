"""The meaning of the names of GPU metrics, across chips and versions of nsys.

Sources: the metric sets that come with nsys 2023.4 (TU10x, TU11x, GA100, GA10x, GA10B, AD10x,
GH100: GpuMetrics/*.config), its user guide ("GPU Metrics"), reports of nsys 2021 to 2025.  A name
is a base, such as ``SMs Active``, and from 2022 on in brackets which of its forms: ``[Throughput
%]``, ``[Avg]``, ``[MHz]`` ….
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from nsysmap.core.records import dataclass

Clock = Literal["gpc", "sys", ""]

_FORM = re.compile(r"\s*\[([^\]]*)\]\s*$")


@dataclass(frozen=True)
class Metric:
    """One metric as a report names it."""

    name: str
    meaning: str  # our word for it; empty if it is in no table: then the name is all there is
    form: str  # what stands in brackets; empty in old reports
    # percent, hertz, count, or ratio: of two counts, so that means over time are not what they seem
    unit: str
    clock: Clock  # whose cycles it is a part of; empty: time's

    @property
    def of_kernels(self) -> bool:
        """Whether it is what kernels do: clocks follow power and temperature over the whole run,
        and links between devices carry what copies, the host's launches and the profiler send.
        """
        return self.unit != "hertz" and self.meaning.split("_")[0] not in _LINKS


_LINKS = frozenset({"pcie", "nvlink", "c2c"})
ACTIVITY = ("sm_active", "compute_warps", "sm_issue")
"""Metrics that show when kernels run, the best first."""

_GPC = {
    "sm_active": ("sm active", "sms active"),
    "sm_issue": (
        "sm issue",
        "sm issue active",
        "sm executed instructions",
        "sm issue stage throughput",
    ),
    "sm_throughput": ("sm throughput",),
    "tensor_active": ("tensor active", "sm tensor pipe throughput"),
    "tensor_or_fp16_active": ("tensor active / fp16 active", "sm fp16+tensor pipe throughput"),
    "compute_warps": ("compute warps in flight", "compute warps"),
    "pixel_warps": ("pixel warps in flight", "pixel warps"),
    "vertex_warps": ("vertex/tess/geometry warps in flight", "vertex/tess/geometry warps"),
    "unallocated_warps": (
        "unallocated warps in active sms",
        "unallocated warps in active sm",
        "active sm unused warp slots",
    ),
    "idle_sm_warps": ("idle sm unused warp slots",),
    "warps_total": ("total sm occupancy",),
    "alu_pipe": ("sm alu pipe throughput",),
    "fma_pipe": ("sm fma pipe throughput",),
    "fma_light_pipe": ("sm fma light pipe throughput",),
    "fma_heavy_pipe": ("sm fma heavy pipe throughput",),
    "sfu_pipe": ("sm sfu pipe throughput",),
    "l1_throughput": ("l1 throughput", "l1tex throughput"),
}
_SYS = {
    "gr_active": ("gr active", "gr active (ge/ce)", "gr engine active"),
    "gpu_active": ("gpu active",),
    "sync_compute": ("sync compute in flight",),
    "async_compute": ("async compute in flight",),
    "sync_copy_engine": ("sync copy engine active",),
    "async_copy_engine": (
        "async copy engine active",
        *(f"async copy engine active {number}" for number in range(10)),
    ),
}
_TIME = {
    "gpc_clock": ("gpc clock frequency",),
    "sys_clock": ("sys clock frequency",),
    "l2_throughput": ("l2 throughput",),
    "dram_read": (
        "dram read bandwidth",
        "dram read throughput",
        "vram read bandwidth",
        "gpu memory read bandwidth",
    ),
    "dram_write": (
        "dram write bandwidth",
        "dram write throughput",
        "vram write bandwidth",
        "gpu memory write bandwidth",
    ),
    "dram": ("vram throughput", "vram total bandwidth", "dram throughput", "dram bandwidth"),
    "pcie_receive": ("pcie rx throughput", "pcie read throughput", "pcie read bandwidth"),
    "pcie_send": ("pcie tx throughput", "pcie write throughput", "pcie write bandwidth"),
    "pcie": ("pcie throughput",),
    "pcie_bar1_reads": ("pcie read requests to bar1",),
    "pcie_bar1_writes": ("pcie write requests to bar1",),
    "c2c_receive": ("ctc rx throughput",),  # NVLink chip to chip, as between Grace and Hopper
    "c2c_send": ("ctc tx throughput",),
    "nvlink_receive": ("nvlink bytes received",),
    "nvlink_send": ("nvlink bytes transmitted",),
    **{
        f"nvlink_{ours}_{what}_{kind}": (f"nvlink {theirs} {what} {kind} data",)
        for ours, theirs in (("receive", "rx"), ("send", "tx"))
        for what in ("requests", "responses")
        for kind in ("user", "protocol")
    },
}
_TABLES: tuple[tuple[Mapping[str, tuple[str, ...]], Clock], ...] = (
    (_GPC, "gpc"),
    (_SYS, "sys"),
    (_TIME, ""),
)
_MEANINGS: dict[str, tuple[str, Clock]] = {
    name: (meaning, clock)
    for table, clock in _TABLES
    for meaning, names in table.items()
    for name in names
}


def metric(name: str) -> Metric:
    """The meaning of that name; ``meaning`` is empty if unknown."""
    found = _FORM.search(name)
    form = found.group(1) if found else ""
    base = " ".join((name[: found.start()] if found else name).split()).casefold()
    meaning, clock = _MEANINGS.get(base, ("", ""))
    unit = _unit(base, form.casefold())
    return Metric(name, meaning, form, unit, clock if unit == "percent" else "")


def _unit(base: str, form: str) -> str:
    if base.endswith("clock frequency") or form in ("mhz", "hz"):
        return "hertz"
    if form == "ratio %":
        return "ratio"
    if form:
        return "percent" if form.endswith("%") else "count"
    # nsys up to 2022: whole percents
    return "count" if base.startswith("pcie") and "requests" in base else "percent"


PREFERRED = (
    "gpc_clock", "sys_clock", "gr_active", "sm_active", "sm_issue", "tensor_active",
    "tensor_or_fp16_active", "compute_warps",
    "unallocated_warps", "dram_read", "dram_write", "dram", "l2_throughput", "pcie_receive",
    "pcie_send", "pcie",
)  # fmt: skip
"""Metrics that are estimated by kernel unless more are requested."""
