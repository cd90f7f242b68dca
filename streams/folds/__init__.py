"""Pure folds, in the order in which an event passes.

`ingest`, `time`, `join`, `statistics`, `learn`: each is a function of the records
that it was given; none reads a clock, the environment or a random generator.
"""
