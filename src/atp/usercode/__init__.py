"""Code that is not ATP's: finding it, loading it, calling it."""
