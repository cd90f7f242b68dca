"""Copies of topics in Redis: written where new, lost, or not as they must be."""
