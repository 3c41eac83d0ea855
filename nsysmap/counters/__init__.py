"""Hardware counters by kernel and layer, from the samples that nsys takes of the whole GPU.

`estimate` finds each kernel's rates from samples that span several kernels, `clock_shift` aligns
the two clocks, `told` says which values are known well enough.
"""
