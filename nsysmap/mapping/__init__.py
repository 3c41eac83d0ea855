"""Kernel to layer: finds the layer that each kernel of a trace ran for, and how certain that is.
The entry point is `mapped_trace.map_report`.
"""
