"""Comparisons of two runs, for people and for pull requests."""
