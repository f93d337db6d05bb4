"""Checks: a transcript and a workspace in, verdicts out. How the transcript came about does not matter here."""
