"""Bandits of one query: which list to show next, by the clicks on lists before."""
