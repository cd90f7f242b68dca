"""Ranking where lists are served: numpy only."""
