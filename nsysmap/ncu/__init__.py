"""Nsight Compute's counters beside a trace: reads ncu's output or its report, and finds its kernels in the trace.

`printed` and `report_file` read, `match` finds which kernel of the trace each profiled kernel is, `beside_trace` makes the table of it.
"""
