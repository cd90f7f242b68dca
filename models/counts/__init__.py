"""What is counted of closed impressions: cells of integers, and their tables."""
