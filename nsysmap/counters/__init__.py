"""Hardware counters by kernel and layer, from the samples that nsys takes of the whole GPU.

`estimate` finds each kernel's rates from samples that cut across kernels, `clock_shift` joins the two clocks, `told` says what is known
well enough.
"""
