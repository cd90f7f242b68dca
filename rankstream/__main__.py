"""`python -m rankstream`: the command line."""

import sys

from rankstream.operations.cli import main

sys.exit(main())
