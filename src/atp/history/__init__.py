"""What earlier runs came to."""
