"""What Redis has of topics: written where it is new, lost, or not as it must be."""
