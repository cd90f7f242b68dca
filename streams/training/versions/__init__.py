"""A version of a model: fitted by its kind, bounded by what it follows."""
