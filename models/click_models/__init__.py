"""Simulated users: labels of a shown list in, clicks out."""
