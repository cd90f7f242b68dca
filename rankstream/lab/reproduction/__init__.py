"""What `rankstream reproduce` runs, keeps and prints."""
