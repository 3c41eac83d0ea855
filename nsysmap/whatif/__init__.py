"""What a change to the program would bring, by replaying its timeline.  `predict.what_if` is the way in."""
