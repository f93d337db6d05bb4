"""The records of the JSON report and of the JSONL events.

Each record has an `of` that makes the record from what a run recorded. Secrets are masked when a record is written, by
`Reporter.masked_json`. A key that is absent from the report is `UNSET` in its record.
"""
