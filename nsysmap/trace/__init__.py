"""What a trace shows by itself: the declared tables made from nsys's own, its launches, TensorRT's
ranges, the inferences, and what is missing.

`open_report.open_trace` is the way in.  With `nsys`, the only room that knows an nsys table, column
or version.
"""
