"""Expectations in words that have an exact meaning become exact checks."""
