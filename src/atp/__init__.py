"""ATP, the Agent Test Platform: one tool for every kind of agent test."""

__version__ = "0.1.0"
