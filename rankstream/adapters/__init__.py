"""Events of other systems as ours: one module for each, documents in, events out."""
