"""Whether a value matches: equality with its differences, regular expressions, globs, JSONPath, JSON Schema."""
