"""Pages of the site that are made of the code, so that they cannot say anything else.

Each module here makes the page of its name from what the program itself goes by:
schemas, the parser of the command line, what Prometheus is told, and docstrings.
"""
