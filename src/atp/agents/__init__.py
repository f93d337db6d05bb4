"""Reaches agents of every kind: a turn of the conversation becomes events and a reply."""
