"""Figures of an analysis as pictures, by matplotlib: layers, idle time, inferences over the run,
roofline, what-if.

`write` is the way in.
"""
