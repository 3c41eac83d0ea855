"""What follows from an engine's layers: dataflow, operations, work, chains, attention, and which
layer of one engine corresponds to which of another.
"""
