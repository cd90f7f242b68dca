"""Which methods may be scored beside the one that draws the lists of an experiment.

A credit is fair on the lists that its own method draws: clicks that ignore relevance
then give nobody a preference. On the lists of another method they do, and the more
impressions, the surer a false winner. So what may be named are methods that would
have drawn the same lists, and estimates made for lists of the method that drew them.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from rankstream.ranking.methods import METHODS, check_method

COUNTERFACTUAL = "counterfactual"


class Compared(Protocol):
    """The part of `rankstream.settings.ExperimentSettings` that is needed here."""

    @property
    def method(self) -> str:
        """What draws the lists."""

    @property
    def options(self) -> Mapping[str, Any]:
        """Of the draw and of its credit."""

    @property
    def also(self) -> Mapping[str, Mapping[str, Any]]:
        """What is scored beside."""


def scored_methods(experiment: Compared) -> dict[str, tuple[str, dict[str, Any]]]:
    """What is scored: the name of each, with its method and options.

    `LABEL:METHOD` is the drawing method with other options of inference, and
    `counterfactual:METHOD` its click rates; the other options are those of the draw.

    Raises
    ------
    ValueError
        Where one would not be fair on the lists that are drawn.

    Examples
    --------
    >>> from rankstream.settings import ExperimentSettings
    >>> also = {"clicks:probabilistic": {"outcome": "clicks"}}
    >>> each = ExperimentSettings(rankers={}, method="probabilistic", also=also)
    >>> scored_methods(each)["clicks:probabilistic"]
    ('probabilistic', {'outcome': 'clicks'})
    """
    main = experiment.method
    check_method(main)
    found = {main: (main, dict(experiment.options))}
    for name, options in experiment.also.items():
        label, _, method = name.rpartition(":")
        if method == main and label == COUNTERFACTUAL:
            _check_options(name, options, ("examination",))
            found[name] = name, {**experiment.options, **options}
        elif method == main and label:
            _check_options(name, options, METHODS[main].options_of_credit)
            found[name] = main, {**experiment.options, **options}
        elif name in METHODS[main].fair_beside:
            found[name] = name, dict(options)
        else:
            raise ValueError(_why_not(name, main))
    return found


def _check_options(
    name: str, options: Mapping[str, Any], known: tuple[str, ...]
) -> None:
    unknown = set(options) - set(known)
    if unknown or not options:
        raise ValueError(
            f"also.{name} must have options among {sorted(known)}, as the lists are "
            f"drawn already; got {sorted(options)}"
        )


def _why_not(name: str, main: str) -> str:
    fair = [f"{COUNTERFACTUAL}:{main}", *METHODS[main].fair_beside]
    if options := METHODS[main].options_of_credit:
        fair.append(f"LABEL:{main} with {' or '.join(options)}")
    return (
        f"also must name what is fair on lists of {main}: {', '.join(fair)}; got "
        f"{name!r}, whose credit favours rankers on lists that it did not draw"
    )
