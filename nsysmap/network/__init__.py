"""What follows from an engine's layers: dataflow, operations, work, chains, attention; and which
layer of one became which of another.
"""
