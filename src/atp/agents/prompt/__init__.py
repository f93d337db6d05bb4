"""Agents that are prompts."""
