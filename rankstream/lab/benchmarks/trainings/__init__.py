"""Benchmarks of trainings: rankers from sums, trees, and memory."""
