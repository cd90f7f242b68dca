"""Rankers trained from statistics and features: reading, training, schedule, checks."""
