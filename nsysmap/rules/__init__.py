"""The rule engine: reads rule files, runs their SQL over the tables, and gives findings.

The rules themselves stand in the folder `rules/` beside the package.  `run.load_rules` and `run.run_rules` are the way in.
"""
