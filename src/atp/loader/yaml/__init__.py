"""YAML suites (document 1)."""
