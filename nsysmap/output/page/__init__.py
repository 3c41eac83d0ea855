"""The interactive page of an analysis: one self-contained HTML file with the answer, a timeline,
layers, and the engine graph.

`write` is the way in.
"""
