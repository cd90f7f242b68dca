"""What a validation says: as a table for people, as JSON for programs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from rankstream.operations.local_replay import OUTCOMES
from rankstream.operations.terminal.words import counted, plain
from rankstream.operations.validation.checks import (
    CHECKS,
    Check,
    Example,
    Status,
    status_of,
)
from rankstream.operations.validation.examination import Examination
from rankstream.operations.validation.reading import Places

STYLES = {
    Status.NONE: "dim",
    Status.PASS: "green",
    Status.WARN: "yellow",
    Status.FAIL: "bold red",
}


class Report:
    """All checks with their examples, once everything was taken."""

    def __init__(
        self, files: Sequence[Path], places: Places, examination: Examination
    ) -> None:
        self._files = files
        self._places = places
        self._examination = examination

    def status(self, check: Check) -> Status:
        """What one check says."""
        found, of = self._examination.found[check.name], check.of
        if not found.n and self._examination.is_blind:
            return Status.NONE
        return status_of(check, found.n, self._examination.n_of(of))

    @property
    def statuses(self) -> set[Status]:
        """All that are said."""
        return {self.status(check) for check in CHECKS}

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        statuses = self.statuses
        worst = next(each for each in reversed(Status) if each in statuses)
        return {
            "status": str(worst),
            "files": [str(file) for file in self._files],
            "lists": self._examination.n_lists,
            "lists_of_impressions": self._examination.n_made,
            "clicks": self._examination.n_clicks,
            "late_by_now": self._examination.n_past,
            "outcomes": self._outcomes(),
            "checks": [self._check(check) for check in CHECKS],
        }

    def show(self, console: Console) -> None:
        """Print the table, and the examples of what did not pass."""
        table = Table("check", "", title_justify="left")
        table.add_column("found", justify="right")
        table.add_column("what must be so")
        for check in CHECKS:
            status, found = self.status(check), self._examination.found[check.name]
            said = f"[{STYLES[status]}]{status}[/]"
            table.add_row(check.name, said, f"{found.n:,}", check.rule)
        console.print(table)
        for check in CHECKS:
            if self.status(check) not in (Status.PASS, Status.NONE):
                self._show_examples(console, check)
        if n_made := self._examination.n_made:
            n_own = self._examination.n_lists - n_made
            console.print(
                f"\n{counted(n_made, 'list')} made of impression events, "
                f"{n_own:,} of queries with their hits",
                highlight=False,
            )
        if self._examination.is_partial:
            console.print(
                "\nwhat could not be read was not judged: each PASS is of the rest",
                highlight=False,
            )
        outcomes = ", ".join(f"{n:,} {name}" for name, n in self._outcomes().items())
        console.print(f"\nas workers would count: {outcomes}", highlight=False)
        if n_past := self._examination.n_past:
            console.print(
                f"\n{n_past:,} of these are too old by now for a namespace where other "
                "events go on: sent there, they will be late or orphans",
                highlight=False,
            )

    def _show_examples(self, console: Console, check: Check) -> None:
        found = self._examination.found[check.name]
        codes = ", ".join(f"{code} {n:,}" for code, n in found.codes.most_common())
        console.print(
            f"\n{check.name}: {check.remedy}" + (f" ({codes})" if codes else ""),
            highlight=False, markup=False,
        )  # fmt: skip
        for example in found.examples:
            place = self._place(example)
            where = f"{place[0]}:{place[1]}" if place else ""
            code = f"{example.code}: " if len(found.codes) > 1 else ""
            # Files hold anything: it is printed as text, never as markup.
            said = plain(f"  {where}  {code}{example.why}")
            console.print(said, highlight=False, soft_wrap=True)

    def _check(self, check: Check) -> dict[str, Any]:
        found = self._examination.found[check.name]
        examples = []
        for example in found.examples:
            place = self._place(example)
            at = {"file": str(place[0]), "line": place[1]} if place else {}
            code = {"code": example.code} if example.code else {}
            examples.append(at | code | {"why": example.why})
        return {
            "name": check.name,
            "status": str(self.status(check)),
            "count": found.n,
            "codes": dict(found.codes),
            "rule": check.rule,
            "remedy": check.remedy,
            "examples": examples,
        }

    def _place(self, example: Example) -> tuple[Path, int] | None:
        return None if example.document is None else self._places.of(example.document)

    def _outcomes(self) -> dict[str, int]:
        counts = self._examination.outcomes
        return {
            name: sum(counts.get(each, 0) for each in names)
            for name, names in OUTCOMES
            if name != "pending"
        }
