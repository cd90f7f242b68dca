"""What is served for which query, decided from statistics."""
