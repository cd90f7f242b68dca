"""Numbers as LEB128 varints, written and read in compiled loops."""

from models.counts.count_tables import Bytes
from models.kernels.compilation import compiled


@compiled
def write_number(out: Bytes, position: int, number: int) -> int:
    """Write a varint into `out` [n_bytes]; returns the position after it."""
    while number > 127:
        out[position] = (number & 127) | 128
        number >>= 7
        position += 1
    out[position] = number
    return position + 1


@compiled
def read_number(source: Bytes, position: int) -> tuple[int, int]:
    """A varint in `source` [n_bytes], and the position after it."""
    number, shift = 0, 0
    while source[position] > 127:
        number |= int(source[position] & 127) << shift
        shift += 7
        position += 1
    return number | (int(source[position]) << shift), position + 1
