"""Writes suites as files of any dialect, with a list of what the dialect can't say."""

from atp.base.secrets import secrets_of
from atp.loader.load import FileDialect
from atp.loader.writing.losses import Written
from atp.suite.suite import Suite

__all__ = ["Written", "write"]


def write(suite: Suite, dialect: FileDialect) -> Written:
    """The suite as the text of a file. What is written is loaded again as it was; the rest is listed."""
    written = _write(suite, dialect)
    return Written(written.text, list(map(secrets_of(suite.secrets).mask_text, written.losses)))


def _write(suite: Suite, dialect: FileDialect) -> Written:
    match dialect:
        case "yaml":
            from atp.loader.writing.yaml import write_yaml

            return write_yaml(suite)
        case "jsonl" | "json":
            from atp.loader.writing.jsonl import write_json, write_jsonl

            return write_jsonl(suite) if dialect == "jsonl" else write_json(suite)
        case "markdown":
            from atp.loader.writing.markdown import write_markdown

            return write_markdown(suite)
