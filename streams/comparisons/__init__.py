"""Rankers compared on the lists that users saw: sums and verdicts."""
