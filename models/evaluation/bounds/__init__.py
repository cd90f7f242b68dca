"""Confidence bounds on the difference of two policies, a family a file."""
