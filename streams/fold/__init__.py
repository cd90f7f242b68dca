"""The fold over the canonical log: join, and statistics as they are written.

A function of the records that it was given; it reads no clock, no environment and no
random generator.
"""
