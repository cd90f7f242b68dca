"""Rankers trained offline, from estimated values of items."""
