"""Small things that every other package uses: errors, diagnostics, secrets, text, files, JSON."""
