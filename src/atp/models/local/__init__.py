"""Local models: small ones that run on this machine, without a key."""
