"""The client of the pipeline: rankers, experiments and settings, for services."""
