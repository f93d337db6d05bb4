"""The pytest plugin: test files as pytest's own items, and fixtures for tests in Python."""
