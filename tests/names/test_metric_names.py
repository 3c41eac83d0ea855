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
    ("NVLink RX Responses User Data [Throughput %]", "nvlink_receive_responses_user", "percent", ""),
    ("NVLink bytes transmitted", "nvlink_send", "percent", ""),
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
