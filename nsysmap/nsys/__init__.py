"""nsys's files: the program that exports them, the cache of its exports, and nsys's own tables in every form that they come in.

Every form implements `tables.NsysTables`: whether a table exists, its columns by name, and these as arrays.  `forms.exported_tables` is
the way in, `export.export` makes an export of a report.  What the tables mean is the business of `trace`.
"""
