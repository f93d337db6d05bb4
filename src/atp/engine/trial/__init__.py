"""One trial: the conversation with the agent, its limits, its workspace and its verdicts."""
