"""MessagePack arrays as they lie, without decoding their elements."""


def n_items_of(array: bytes) -> int:
    """The length of a MessagePack array, from its first five bytes.

    Examples
    --------
    >>> n_items_of(bytes([0x93, 1, 2, 3])), n_items_of(bytes([0xDC, 1, 0, 0, 0]))
    (3, 256)
    """
    first = array[0]
    if first & 0xF0 == 0x90:
        return first & 0x0F
    return int.from_bytes(array[1:3] if first == 0xDC else array[1:5], "big")
