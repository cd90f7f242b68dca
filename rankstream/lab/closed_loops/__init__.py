"""Learners that live with simulated users in one loop: rank, click, learn.

A learner ranks for the next impression with what it learned from the last one. For
learning curves, benchmarks and demonstrations; a pipeline does the same with events
in between. Most loops are compiled.
"""
