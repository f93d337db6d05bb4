"""Judges: expectations in words and criteria become verdicts."""
