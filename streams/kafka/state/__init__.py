"""State of partitions: written in transactions, and read back whole."""
