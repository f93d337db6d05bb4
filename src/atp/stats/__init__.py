"""Computes scores, stability and summaries from results."""
