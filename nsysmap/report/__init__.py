"""One module per format: the terminal, Markdown, JSON, a database, trex's files.

All write what `model.Report` holds, which `build.report_of` makes of an analysis.
"""
