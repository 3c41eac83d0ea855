"""Chooses what fits this program and its version of TensorRT: commands, lines of code,
conditions.
"""
