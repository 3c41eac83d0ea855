"""Kernel to layer: which layer each kernel of a trace ran for, and how certain that is.
`mapped_trace.map_report` is the way in.
"""
