"""Agents that are Python code, in this process or in an environment of their own."""
