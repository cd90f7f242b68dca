"""How trees are boosted, of models of the kind "trees" whose versions are trained."""

from typing import Annotated, Literal

import msgspec

from rankstream.configuration.section import NotNegative, Positive, Section

LeafCount = Annotated[int, msgspec.Meta(ge=2, le=512)]
"""A tree of more could be deeper than a snapshot may hold."""

Part = Annotated[float, msgspec.Meta(gt=0, le=1)]


class TreesSettings(Section, frozen=True):
    """What each tree may be like, and how many there are.

    A training adds `rounds` trees at most to its parent's, and ends when `patience` of
    them gain nothing; where there would be more than `rounds_at_most` it begins anew.
    A leaf has `least_items` items of known value or more, each of `least_support`.
    `regularisation` is added to the curvature of each leaf, in units of that of a mean
    item. `monotone` names features with which scores only rise or fall. With `missing`
    = "zero" a feature of 0 is one that is missing.
    """

    rounds: Positive = 300
    rounds_at_most: Positive = 1_000
    patience: Positive = 30
    leaves: LeafCount = 31
    learning_rate: Part = 0.05
    least_items: Positive = 20
    share_of_features: Part = 1.0
    share_of_queries: Part = 1.0
    regularisation: NotNegative = 1.0
    monotone: dict[str, Literal["rising", "falling"]] = {}
    missing: Literal["none", "zero"] = "none"
