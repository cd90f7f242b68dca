"""Why a state is not converted."""


class ConversionRefused(RuntimeError):
    """A state of before that cannot be converted, or not now.

    Operator action: the message names what is needed first.
    """
