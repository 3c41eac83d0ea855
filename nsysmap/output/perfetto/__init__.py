"""An analysis as a Perfetto trace: threads, streams, layers above kernels, flows from launch to
kernel, idle time, counters.

`write` is the way in.
"""
