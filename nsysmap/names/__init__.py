"""The decoder of kernel, tactic and layer names: nothing but names in, meaning out.
`decode.decode` is the way in.
"""
