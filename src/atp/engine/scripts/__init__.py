"""Tests in Python: `scripts:…` and the fixtures of pytest."""
