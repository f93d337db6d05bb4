"""Tests for authors of plugins: the conformance suite and its reference agent."""
