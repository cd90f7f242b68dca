"""The partitions of a process: taken over, folded, committed, given up."""
