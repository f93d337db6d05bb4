"""Messages become a model's reply."""
