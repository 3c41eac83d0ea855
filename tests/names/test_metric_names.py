"""Names of GPU metrics, one line a name."""

from __future__ import annotations

import pytest

from nsysmap.names.metric_names import PREFERRED, metric

NAMES = [
    ("GPC Clock Frequency [MHz]", "gpc_clock", "hertz", ""),
    ("SYS Clock Frequency [MHz]", "sys_clock", "hertz", ""),
    ("GPC Clock Frequency", "gpc_clock", "hertz", ""),
    ("GR Active [Throughput %]", "gr_active", "percent", "sys"),
    ("GR Active (GE/CE)", "gr_active", "percent", "sys"),
    ("SMs Active [Throughput %]", "sm_active", "percent", "gpc"),
    ("SM Active [Throughput %]", "sm_active", "percent", "gpc"),
    ("SM Active", "sm_active", "percent", "gpc"),
    ("SM Issue [Throughput %]", "sm_issue", "percent", "gpc"),
    ("Tensor Active [Throughput %]", "tensor_active", "percent", "gpc"),
    ("Tensor Active / FP16 Active [Throughput %]", "tensor_or_fp16_active", "percent", "gpc"),
    ("Tensor Active / FP16 Active", "tensor_or_fp16_active", "percent", "gpc"),
    ("Compute Warps in Flight [Throughput %]", "compute_warps", "percent", "gpc"),
    ("Compute Warps in Flight [Avg]", "compute_warps", "count", ""),
    ("Compute Warps in Flight [Avg Warps per Cycle]", "compute_warps", "count", ""),
    ("Compute Warps In Flight", "compute_warps", "percent", "gpc"),
    ("Unallocated Warps in Active SMs [Throughput %]", "unallocated_warps", "percent", "gpc"),
    ("Unallocated Warps in Active SM", "unallocated_warps", "percent", "gpc"),
    ("DRAM Read Bandwidth [Throughput %]", "dram_read", "percent", ""),
    ("DRAM Write Throughput", "dram_write", "percent", ""),
    ("GPU Memory Read Bandwidth [Throughput %]", "dram_read", "percent", ""),
    ("VRAM Throughput [Throughput %]", "dram", "percent", ""),
    ("PCIe RX Throughput [Throughput %]", "pcie_receive", "percent", ""),
    ("PCIe Tx Throughput", "pcie_send", "percent", ""),
    ("PCIe Read Requests to BAR1 [Requests]", "pcie_bar1_reads", "count", ""),
    ("PCIe Write Requests to BAR1", "pcie_bar1_writes", "count", ""),
    (
        "NVLink RX Responses User Data [Throughput %]",
        "nvlink_receive_responses_user",
        "percent",
        "",
    ),
    ("NVLink bytes transmitted", "nvlink_send", "percent", ""),
    ("CTC RX Throughput [Throughput %]", "c2c_receive", "percent", ""),
    ("CTC TX Throughput [Throughput %]", "c2c_send", "percent", ""),
    ("Async Copy Engine Active 1 [Throughput %]", "async_copy_engine", "percent", "sys"),
    ("Sync Copy Engine Active [Workloads]", "sync_copy_engine", "count", ""),
    ("Sync CS SM Warps [Occupancy %]", "", "percent", ""),
    ("VidL2 Sector Hit-Rate [Ratio %]", "", "ratio", ""),
    ("Something of My Own [Throughput %]", "", "percent", ""),
    ("EMC Frequency [MHz]", "", "hertz", ""),
]


@pytest.mark.parametrize(("name", "meaning", "unit", "clock"), NAMES)
def test_name(name: str, meaning: str, unit: str, clock: str) -> None:
    found = metric(name)
    assert (found.name, found.meaning, found.unit, found.clock) == (name, meaning, unit, clock)


def test_what_is_worked_out_has_a_name() -> None:
    known = {metric(name).meaning for name, *_ in NAMES}
    assert set(PREFERRED) <= known | {"l2_throughput", "pcie"}


GB20X = """GPC Clock Frequency [MHz]|SYS Clock Frequency [MHz]|
Sync Copy Engine Active [Throughput %]|Sync Copy Engine Active [Cycles Active]|
Async Copy Engine Active 0 [Throughput %]|Async Copy Engine Active 0 [Cycles Active]|GR Active [Throughput %]|SMs Active [Throughput %]|
SM Issue [Throughput %]|Tensor Active [Throughput %]|Vertex/Tess/Geometry Warps in Flight [Throughput %]|
Vertex/Tess/Geometry Warps in Flight [Avg]|Vertex/Tess/Geometry Warps in Flight [Avg Warps per Cycle]|
Pixel Warps in Flight [Throughput %]|Pixel Warps in Flight [Avg]|Pixel Warps in Flight [Avg Warps per Cycle]|
Compute Warps in Flight [Throughput %]|Compute Warps in Flight [Avg]|Compute Warps in Flight [Avg Warps per Cycle]|
DRAM Read Bandwidth [Throughput %]|DRAM Write Bandwidth [Throughput %]|PCIe RX Throughput [Throughput %]|
PCIe TX Throughput [Throughput %]|PCIe Read Requests to BAR1 [Requests]|PCIe Write Requests to BAR1 [Requests]"""  # noqa: E501


def test_every_metric_of_blackwell_boards_is_known() -> None:
    """The set gb20x of nsys 2025.3 (RTX PRO 6000); GB10 has the same without DRAM and PCIe."""
    metrics = [metric(name.strip()) for name in GB20X.split("|")]
    assert len(metrics) == 25
    assert all(each.meaning for each in metrics)
    percents = [each.meaning for each in metrics if each.unit == "percent"]
    # a meaning has one percentage; its other forms are counts
    assert len(percents) == len(set(percents))
