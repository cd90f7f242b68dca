"""What events and judged queries come in: one module for each format."""
