"""What was counted, as files for other programs."""
