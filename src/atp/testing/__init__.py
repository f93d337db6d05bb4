"""What authors of plugins test theirs with."""
