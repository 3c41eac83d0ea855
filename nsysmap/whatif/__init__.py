"""Predicts what a change to the program would save, by replaying its timeline. The entry point is
`predict.what_if`.
"""
