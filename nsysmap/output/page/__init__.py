"""The interactive page of an analysis: one HTML file that needs nothing else, with the answer, a
timeline, layers, and the engine graph.

`write` is the way in.
"""
