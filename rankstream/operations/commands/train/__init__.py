"""`rankstream train`: from a log in files to a trained ranker, in this process."""

import argparse
from pathlib import Path

from rankstream.operations.commands.options.curves import examination_told
from rankstream.operations.commands.options.files import add_folded_format
from rankstream.operations.commands.options.kinds import BY_THE_LOG

EPILOG = """examples:
  rankstream train --log clicks.csv --features products.csv --model search --out run/
                                               a table of shown items, and features
                                               of each item in another
  rankstream train --log clicks.csv --columns impression=list,item=sku,at=shown_at,\\
query=words,position=rank,clicked=bought,features=f_* --model search --out run/
                                               features in columns f_... of the log
  rankstream train --log events.dump.zst --config shop.toml --model search --out run/
                                               as the role `train` does from this log
  rankstream train --log clicks.csv --features products.csv --model search \
--kind trees --out run/                        trees, which LightGBM grows
  rankstream train --statistics counts.bin --features products.csv --model search \
--out run/                                     what was counted, without the log
  rankstream train --verify run/               make it again from what lies there
  rankstream rank --model run/ --features products.csv --out ranked.csv

It corrects clicks for where users look, trains a ranker on what is left, and says what
the ranker is worth on queries and users that it has not learned from. The folder has
the snapshot, MODEL@EPOCH.VERSION.snapshot, which is what the role `train` of a worker
would have published, to the byte; and all that it was made from. Settings are optional:
without [models.NAME] in --config they are chosen by the log, and said. docs/training.md
has the whole way, "Without Kafka".

exit status: 0 if it is done, 1 if nothing can be trained, or a snapshot differs
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--log",
        nargs="+",
        type=Path,
        metavar="FILE",
        dest="paths",
        help="lists and clicks: events, tables or documents of other systems in files, "
        "folders of them, or a dump of `rankstream dump`",
    )
    parser.add_argument(
        "--statistics",
        type=Path,
        metavar="FILE.bin",
        help="what was counted, in the place of a log: of `rankstream statistics "
        "export FILE.bin`, or of a folder of `replay --local`; with --features",
    )
    parser.add_argument(
        "--local",
        action="store_true",
        help="in this process, which is what it does at any rate; `rankstream "
        "intervene` has it done on Kafka",
    )
    parser.add_argument(
        "--model", metavar="NAME", help="which one; [models.NAME] of --config, or new"
    )
    parser.add_argument(
        "--kind",
        choices=BY_THE_LOG,
        help="of a model that no settings have: a weighted sum of features, trees, or "
        "the better of both on queries held out (default: linear)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="folder for the snapshot and all that it was made from",
    )
    parser.add_argument(
        "--parent",
        type=Path,
        metavar="PATH",
        help="go on from this snapshot: its file, or the folder of its training "
        "(default: from version 0)",
    )
    parser.add_argument(
        "--examination",
        metavar="CURVE",
        type=examination_told,
        help="what clicks are corrected by: probabilities of looking at ranks 1, 2, "
        "..., such as 1,0.6,0.4, or a JSON file with them (default: that of "
        "models.NAME.training, else what clicks tell)",
    )
    parser.add_argument(
        "--verify",
        type=Path,
        metavar="DIR",
        help="train again from what the folder of a training has, or from --log, and "
        "compare the bytes",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_folded_format(parser)
