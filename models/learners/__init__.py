"""Rankers that learn while they serve: one interaction at a time, in log order."""
