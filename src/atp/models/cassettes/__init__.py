"""Recorded answers of models, tools and agents."""
