"""Scoring functions: flat parameters in, scores and their gradients out."""
