"""What a change to the program would save, predicted by replaying its timeline.  `predict.what_if`
is the way in.
"""
