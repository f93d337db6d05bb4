"""JSONL test files (documents 4, 5)."""
