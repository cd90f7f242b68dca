"""The fold's core in C, how it is compiled, and how Python calls it.

All `*.c` files here become one shared library that needs nothing of Python's.
"""
