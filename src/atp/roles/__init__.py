"""Roles around the agent under test: judge, simulator, generators, reporter. Each asks a model, agent or function."""
