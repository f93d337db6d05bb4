"""A suite and options become a journal."""
