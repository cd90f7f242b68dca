"""The whole pipeline at work in one process, to look at."""
