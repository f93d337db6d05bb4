"""The page of the HTML report, live: over a run while it runs, or over all runs of a project."""
