"""`python -m docs.alerting`: rules, dashboard and page, from the table."""

import argparse
import sys
from pathlib import Path

from docs.alerting.files import FILES, rules

TREE = Path(__file__).parents[2]

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m docs.alerting")
    parser.add_argument(
        "--site", metavar="URL", help="print rules that link to this site instead"
    )
    site = parser.parse_args().site
    if site:
        sys.stdout.write(rules(site=site))
    else:
        for place, make in FILES.items():
            (TREE / place).write_text(make(), encoding="utf-8")
