"""`rankstream statistics export --to judgments` and `--to training`."""

import argparse

from rich.console import Console

from rankstream.operations.answers.curve import NO_CURVE, curve_for
from rankstream.operations.answers.exports.judgments import (
    FORMS,
    Asked,
    write_judgments,
)
from rankstream.operations.answers.sources import CountedLog
from rankstream.operations.answers.statistics import WrittenStatistics
from rankstream.operations.commands import nothing, write_json
from rankstream.operations.commands.statistics.tables import say
from rankstream.operations.terminal.words import counted

TRAINING = "training"


def check_asked(arguments: argparse.Namespace) -> None:
    """Refuse what is not enough, before all of a topic is read.

    Raises
    ------
    ValueError
        Where no format of that kind is named, or no cut-offs.
    """
    wanted = arguments.to == TRAINING
    known = [name for name, form in FORMS.items() if form.has_features == wanted]
    if arguments.format not in known:
        raise ValueError(
            f"--to {arguments.to} must have --format, one of {', '.join(known)}; got "
            f"{arguments.format}"
        )
    if not arguments.grades:
        raise ValueError(
            "--grades must be cut-offs of relevance, as 0.02,0.1,0.3: what reaches the "
            "first is grade 1; got none"
        )


def export_graded(source: CountedLog, arguments: argparse.Namespace) -> int:
    """Write the files; 1 where clicks tell no curve to correct relevance by.

    Raises
    ------
    ExportRefused, RuntimeError
    """
    found = curve_for(source, given=arguments.examination, model=arguments.curve)
    if found.curve is None:
        return nothing(NO_CURVE)
    asked = Asked(
        arguments.format,
        arguments.grades,
        arguments.index,
        arguments.model,
        arguments.estimator,
    )
    written = write_judgments(source, arguments.file, found.curve, asked)
    if arguments.json:
        write_json(WrittenStatistics(written.files, True).to_dict())
        return 0
    for path, n_rows in written.files.items():
        Console().print(f"{path}: {counted(n_rows, 'row')}", highlight=False)
    for remark in (*found.said(), *found.curve.remarks()):
        say(Console(), remark)
    if written.n_left_out:
        left = counted(written.n_left_out, "item")
        say(Console(), f"{left} left out: too little is known, or no features")
    return 0
