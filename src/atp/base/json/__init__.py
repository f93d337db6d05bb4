"""JSON: one canonical text for a value, values found inside texts, JSON with comments."""
