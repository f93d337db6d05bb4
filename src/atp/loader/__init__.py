"""Loads suites from YAML, Markdown and JSONL files, or reports what is wrong and where."""

from atp.base.diagnostics import Diagnostic, LoadError
from atp.loader.load import Loaded, TestLoader

__all__ = ["Diagnostic", "LoadError", "Loaded", "TestLoader"]
