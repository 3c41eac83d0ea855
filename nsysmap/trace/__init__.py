"""nsys's files, and what they say by themselves: the tables of a report, its launches, TensorRT's ranges, the inferences.

The only room that knows an nsys table, column, file format or version.  `reader.read_trace` is the way in.
"""
