"""The records of the JSON report and of the JSONL events."""
