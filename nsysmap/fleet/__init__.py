"""Many reports at once: each is analysed in a process of its own, and what follows from all is one Parquet dataset, a table and a page.

`run` is the way in.  The scheduler is Dask's (`distributed`), which only this room uses.
"""
