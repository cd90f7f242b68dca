"""Roles that read topics and fold nothing."""
