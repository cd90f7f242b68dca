"""Bias of users, estimated from sums of clicks."""
