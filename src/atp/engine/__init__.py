"""A Suite and options become a journal: plan, workers, trials, limits, workspaces, resume."""
