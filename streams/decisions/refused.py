"""Why lists are no evidence."""

from enum import StrEnum


class Refused(StrEnum):
    """Why lists are left out."""

    GROWING = "lists that named no candidates, or beyond the limits of their query"
    CAPPED = "in scopes beyond the limits of their query, which count no placements"
    CONVERTED = "in scopes that were converted from an earlier release"
    UNKNOWN = "of unknown policies"
    MIXED = "of several policies in one scope, which does not keep them apart"


UNSEEN = "whose policy never, or hardly ever, shows an item that both models move"
"""Why a list says nothing of both models; of other comparisons it may."""
