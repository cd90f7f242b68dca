"""The fold over the canonical log: join, statistics, and what they are written as.

A function of the records that it was given; it reads no clock, no environment and no
random generator.
"""
