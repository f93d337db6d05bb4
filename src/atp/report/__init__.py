"""A journal becomes what people and CI read."""
