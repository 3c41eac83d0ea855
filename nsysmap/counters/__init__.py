"""Hardware counters by kernel and layer: from the samples that nsys takes and from Nsight Compute's own counts.

`estimate` finds each kernel's rates from samples that cut across kernels, `clock_shift` joins the two clocks, `told` says what is known
well enough; `ncu_csv`, `ncu_match` and `ncu_compare` put Nsight Compute's counters beside them.
"""
