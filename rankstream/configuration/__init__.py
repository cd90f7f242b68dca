"""Sections of the settings, each with what it may not be beside it."""
