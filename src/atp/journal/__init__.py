"""The journal of a run: its records, who writes and reads them, who listens."""
