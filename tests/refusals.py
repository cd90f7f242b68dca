"""Every sentence with which the code refuses something, found in its sources.

A sentence is known by its beginning: up to the first semicolon or colon, with `…`
where a value is filled in. So a row of `docs/refusals.md` stays right where only the
values or the remedy change.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

TREE = Path(__file__).parents[1]
ROOMS = ("rankstream", "streams", "producers", "models")
VALUE = "…"

REFUSING = {
    "ChangeRefused", "ConversionRefused", "DecisionError", "DecisionsRefused",
    "DeploymentRefused",
    "EventTooLarge", "ExperimentChanged",
    "EstimatorRefused", "ExperimentError", "ExplorationRefused", "FeaturesRefused",
    "ExportRefused", "FileUnreadable", "ImportRefused",
    "InteractionsBroken", "KafkaAway", "KafkaRefused", "LearnerStuck", "LogBroken",
    "LogRefused", "ModelChanged", "ModelMissed", "NoSnapshot", "NoSuchLetter",
    "ModelFileRefused",
    "NotCompiled", "NotInstalled", "NothingJoined", "OtherUnit",
    "ProgressMismatch", "PromotionRefused", "RollbackRefused",
    "RuntimeError", "SchemaRefused", "SendFailed", "SettingsError", "SnapshotError",
    "StateRefused", "StatisticsRefused", "StoreUnavailable", "TargetAhead",
    "TimedOut", "TokenRefused", "TooManyClasses",
    "TopicUnreadable", "TrainingDiverged", "TrainingFailed",
    "TrainingRefused", "VerificationRefused", "WriterFenced",
}  # fmt: skip
"""Exceptions whose sentences belong into the table."""

OTHERS = {
    "Awaited": "an impression waits a little for the others of its list",
    "BrokerAway": "the watch of topics waits and says so",
    "BenchmarkFailed": "a measurement says that it measured nothing",
    "ClientGone": "a client has hung up, and is not answered",
    "Faulty": "the fold counts such a list under its reason and goes on",
    "_Overtaken": "somebody changed the canary that was judged: it is judged anew",
    "IllegalMove": "a fault of ours; the worker starts again",
    "Interrupted": "the user stopped a wait",
    "NothingToValue": "an answer of `evaluate`: what a log lacks, with its remedy",
    "ListAwaited": "a click waits a little for its list",
    "NotAdapted": "becomes a dead letter, which has its words",
    "PositionsHang": "the role ends what hangs, and asks again",
    "NothingSplits": "a round of trees adds none, and is one without a gain",
    "Problem": "is an answer over HTTP; docs/http.md has its codes",
    "Refused": "becomes a dead letter, which has a code",
    "Stopped": "a training was told to end, and nothing came of it",
    "UbjsonDamaged": "becomes the refusal of a model file, with its words",
    "SpoiltRecord": "who reads it decodes the scope alone and says what is wrong",
}
"""Exceptions that are no refusals of that kind, and why."""

SETTINGS_RULES = (
    "rankstream/settings.py",
    *(
        path.relative_to(TREE).as_posix()
        for path in sorted((TREE / "rankstream" / "configuration").glob("*.py"))
    ),
    "rankstream/ranking/methods.py",
    "rankstream/ranking/scored_beside.py",
)
"""Where sentences are made that settings are refused with."""

TOPIC_RULES = (
    "producers/brokers/topic_admin.py",
    "producers/brokers/topic_safety.py",
    "producers/brokers/topic_shape.py",
)
"""Where sentences are made about topics; each begins with the word."""


class Refusal(NamedTuple):
    """The beginning of a sentence, and where it is said."""

    beginning: str
    place: str


def beginning_of(text: str) -> str:
    """Up to the first semicolon or colon, on one line."""
    head = re.split(r"[;:](?:\s|$)", text, maxsplit=1)[0]
    return re.sub(r"\s+", " ", head).strip().replace("|", "/")


def refusals() -> list[Refusal]:
    """All of them, each with its place."""
    found: list[Refusal] = []
    for room in ROOMS:
        for path in sorted((TREE / room).rglob("*.py")):
            found += _of_module(path)
    return found


def exceptions() -> set[str]:
    """Names of all exceptions that the code declares."""
    names: set[str] = set()
    bases = {"Exception", "OSError", "RuntimeError", "ValueError"}
    classes = [
        node
        for room in ROOMS
        for path in (TREE / room).rglob("*.py")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ClassDef)
    ]
    while True:
        more = {
            node.name
            for node in classes
            if any(isinstance(b, ast.Name) and b.id in bases for b in node.bases)
        }
        if more <= names:
            return names
        names |= more
        bases |= more


@cache
def parsed(path: Path) -> ast.Module:
    """The module as a tree."""
    return ast.parse(path.read_text(encoding="utf-8"))


def _of_module(path: Path) -> Iterator[Refusal]:
    name, tree = path.relative_to(TREE).as_posix(), parsed(path)
    for function in _functions(tree):
        for node in _own_nodes(function):
            for text in _said(node, function, tree, name):
                head = beginning_of(text)
                if head.strip(f"{VALUE} ,."):
                    yield Refusal(head, f"{name}:{node.lineno}")  # type: ignore[attr-defined]


def _said(
    node: ast.AST, function: ast.AST, tree: ast.Module, name: str
) -> Iterator[str]:
    """Sentences that a statement refuses something with."""
    if isinstance(node, ast.Raise | ast.Return) and (call := _refusing(node, name)):
        for argument in reversed(call.args):
            if texts := list(_texts(argument, function, tree)):
                yield from texts
                return
    elif name in SETTINGS_RULES and isinstance(node, ast.Yield | ast.Return):
        value = node.value
        if isinstance(value, ast.Tuple):
            yield from _texts(value.elts[-1], function, tree)
    elif name in SETTINGS_RULES and isinstance(node, ast.DictComp):
        yield from _texts(node.value, function, tree)
    elif name in TOPIC_RULES and isinstance(node, ast.JoinedStr):
        text = _template(node)
        if text.startswith("topic "):
            yield text


def _refusing(node: ast.Raise | ast.Return, name: str) -> ast.Call | None:
    call = node.exc if isinstance(node, ast.Raise) else node.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return None
    kind = call.func.id
    is_rule = name in SETTINGS_RULES and kind == "ValueError"
    is_core = name.endswith("core_library.py") and kind == "ImportError"
    return call if kind in REFUSING or is_rule or is_core else None


def _texts(node: ast.expr, function: ast.AST, tree: ast.Module) -> Iterator[str]:
    """What an expression may say, with `…` for values."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield _template(node)
    elif isinstance(node, ast.IfExp):
        yield from _texts(node.body, function, tree)
        yield from _texts(node.orelse, function, tree)
    elif isinstance(node, ast.Name):
        for each in _own_nodes(function):
            if isinstance(each, ast.Assign) and _names(each.targets[0], node.id):
                yield from _texts(each.value, function, tree)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        yield from _returned(node.func.id, tree)


def _returned(name: str, tree: ast.Module) -> Iterator[str]:
    """What a function of the module, or of the one of schemas, returns."""
    schemas = parsed(TREE / "rankstream/wire/schemas.py")
    for each in (*_functions(tree), *_functions(schemas)):
        if isinstance(each, ast.FunctionDef) and each.name == name:
            for node in _own_nodes(each):
                if isinstance(node, ast.Return) and node.value is not None:
                    yield from _texts(node.value, each, tree)
            return


def _template(node: ast.JoinedStr) -> str:
    return "".join(
        str(part.value) if isinstance(part, ast.Constant) else VALUE
        for part in node.values
    )


def _names(target: ast.expr, name: str) -> bool:
    return isinstance(target, ast.Name) and target.id == name


def _functions(tree: ast.Module) -> Iterator[ast.AST]:
    yield tree
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Nodes of a function, without those of functions inside it."""
    waiting = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        yield node
        waiting += ast.iter_child_nodes(node)
