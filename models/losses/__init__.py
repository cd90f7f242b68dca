"""Losses of rankings, from estimated values of items: a value and its slopes."""
