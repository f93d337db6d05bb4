"""Reports for other programs and for files."""
