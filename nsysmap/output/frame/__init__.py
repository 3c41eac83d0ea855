"""The frame that the interactive pages share: a header, what opens first, tabs that keep their
state in the address, copy buttons, tables as CSV.
"""
