"""Measures where the time goes: by layer, kernel, data type and region, against the device's
roofline, and why the GPU was idle.
"""
