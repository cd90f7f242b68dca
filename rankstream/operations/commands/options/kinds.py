"""Kinds of a model that no settings have, by name; help loads nothing else."""

BY_THE_LOG = ("linear", "trees", "selected")
