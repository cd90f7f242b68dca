"""What comes before the input topics."""
