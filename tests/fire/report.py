"""The result of a run for people; programs have the same as JSON."""

from typing import Any

EXACT = ("lost", "double", "wrong", "extra", "dead_letters_missing")
READ = ("torn", "missing", "backward")
JUDGES = (
    "by_what_was_sent",
    "by_recount",
    "by_learning_again",
    "by_training_again",
)
FIGURES = (*EXACT, *READ)
"""All 0, or the pipeline does not keep what it promises."""


def as_text(result: dict[str, Any]) -> str:
    """What was done, what came of it, and whether that is well."""
    lines = _of_faults(result) + _of_events(result) + _of_figures(result)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _of_faults(result: dict[str, Any]) -> list[str]:
    lines = ["faults"]
    for fault in result["faults"]:
        doubt = "" if fault["is_under_way"] else "  NOT UNDER WAY"
        lines.append(
            f"  {fault['at_s']:7.1f} s  {fault['where']:<24}"
            f"event {fault['sent']:>9,}  {fault['detail']}{doubt}"
        )
    done, planned = len(result["faults"]), len(result["planned_faults"])
    return [*lines, f"  {done} struck of {planned} planned", ""]


def _of_events(result: dict[str, Any]) -> list[str]:
    peaks = ", ".join(
        f"{role} {peak}" for role, peak in sorted(result["peak_memory_mb"].items())
    )
    return [
        f"events                  {result['events']:,}, seed {result['seed']}; "
        f"{result['events_of_services']:,} of services that nobody held",
        *(f"  {name:<22}{count:,}" for name, count in result["outcomes"].items()),
        f"  of ingestion     {result['dead_letters']:,} dead letters in all",
        f"reads of snapshots      {result['reads']:,}, {result['versions_read']:,} "
        f"versions; Redis did not answer {result['unavailable']:,}",
        f"trainings               {result['trainings']:,}",
        f"longest pause           {result['longest_pause_s']} s",
        f"most memory             MB: {peaks}",
        f"on disk, logs           {result['disk_mb']:,} MB, {result['log_lines']:,} "
        "lines",
        f"all of it               {result['seconds']:,} s",
        "",
    ]


def _of_figures(result: dict[str, Any]) -> list[str]:
    lines = [f"{name:<24}{result[name]:,}" for name in FIGURES]
    for judge in JUDGES:
        lines += [f"  {judge}: {what}" for what in result[judge]["differences"]]
    if result["failure"]:
        lines.append(f"failure: {result['failure']}")
    return [*lines, "", "exact" if result["ok"] else "NOT AS IT MUST BE"]
