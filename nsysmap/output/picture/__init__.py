"""The engine drawn: as SVG, PNG, DOT or a page of HTML.  `model.picture` decides what is shown,
`write.write_graph` writes it.
"""
