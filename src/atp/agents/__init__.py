"""How agents are reached: a turn of the conversation becomes events and a reply."""
