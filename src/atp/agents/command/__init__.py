"""Agents that are commands."""
