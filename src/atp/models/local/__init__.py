"""The local model: a small model on this machine, without a key."""
