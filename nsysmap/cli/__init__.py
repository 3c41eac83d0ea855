"""The command line, one module per command: check paths, read, compute, write, print.

Only this room prints, sets an exit status or imports click.
"""
