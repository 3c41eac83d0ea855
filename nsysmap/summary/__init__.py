"""The answer: what an inference takes, where that time goes, what to do first, and how certain that is.

`summarize` makes one small record of an analysis's tables; the terminal, the page, Markdown, JSON and comparisons show that record.
"""
