"""What comes before the front door."""
