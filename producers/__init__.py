"""Replay, feed, simulation and topics: all that comes before the input topics."""
