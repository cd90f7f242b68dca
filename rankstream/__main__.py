"""`python -m rankstream`: the command line."""

import sys

from rankstream.operations.cli import main

if __name__ == "__main__":
    sys.exit(main())
