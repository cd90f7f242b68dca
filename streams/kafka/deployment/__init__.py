"""Who writes the versions of a model that are deployed: one writer, in transactions."""
