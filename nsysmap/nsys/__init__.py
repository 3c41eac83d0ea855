"""nsys's files: the program that exports them, the cache of what it exported, and nsys's own tables in every form that they come in.

Every form answers `tables.NsysTables`: is this table there, with which columns, and give me these as arrays.  `forms.exported_tables` is
the way in, `export.export` makes an export of a report.  What the tables mean is the business of `trace`.
"""
