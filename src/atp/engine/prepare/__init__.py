"""Before a run: settings, input, agents and the plan of trials."""
