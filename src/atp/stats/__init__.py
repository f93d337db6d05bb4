"""Results become rates, stability and scores."""
