"""Connectors: how a project names and configures its models."""
