"""What all sections of the settings are: structs of names, types and defaults."""

from typing import Annotated

import msgspec

Positive = Annotated[int, msgspec.Meta(gt=0)]
PositiveFloat = Annotated[float, msgspec.Meta(gt=0)]
NotNegative = Annotated[float, msgspec.Meta(ge=0)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A section of the settings; unknown names are refused."""


Fault = tuple[str, str]
"""The full name of a setting that cannot be so, and a sentence about it."""
