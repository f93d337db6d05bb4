"""Connectors: which model, where it is and how it is called."""
