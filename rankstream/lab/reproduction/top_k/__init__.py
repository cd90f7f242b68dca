"""Learning from clicks on the first k documents alone."""
