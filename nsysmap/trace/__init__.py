"""What a trace says by itself: the declared tables made of nsys's own, its launches, TensorRT's
ranges, the inferences, and what it lacks.

`open_report.open_trace` is the way in.  With `nsys`, the only room that knows an nsys table, column
or version.
"""
