"""Agents in containers."""
