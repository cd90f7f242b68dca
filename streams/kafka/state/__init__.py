"""What partitions keep: written in transactions, and read back whole."""
