"""Rankers trained from estimated values of items, with clicks long gone."""
