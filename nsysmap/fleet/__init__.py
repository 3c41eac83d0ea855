"""Many reports at once: each is analysed in its own process; together they give one Parquet
dataset, a table and a page.

`run` is the way in.  The scheduler is Dask's (`distributed`), which only this room uses.
"""
