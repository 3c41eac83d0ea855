"""Reads what Nsight Systems wrote: reports by nsys itself or by our own reader, and every form that
it exports.
"""
