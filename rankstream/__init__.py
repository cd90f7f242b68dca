"""The face of the product: the command line, and the ranker's side."""
