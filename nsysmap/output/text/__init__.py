"""The answer and the whole report as text."""
