"""The rule engine: reads rule files, runs their SQL over the tables, and gives findings.

The rules themselves are in the folder `rules/` beside the package.  `packs.load_rules` and
`run.run_rules` are the way in.
"""
