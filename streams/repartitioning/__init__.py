"""State of a partition of the log, divided where the log gets more of them."""
