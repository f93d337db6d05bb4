"""JSONL test files."""
