"""Files that are made to take long are read in the time that their bytes take."""

import time

from rankstream.operations.tree_files.ranklib_xml import read_ranklib

MOST_SECONDS = 5.0
"""Of a processor: a fraction of one is needed, and 12 where text is copied again."""


def test_many_lines_in_one_element_take_no_longer_than_in_many() -> None:
    """The parser hands over each of them by itself."""
    text = b"\n" * 1_500_000 + b"0.5"
    content = b"<ensemble><tree><split><output>%s</output></split></tree></ensemble>"
    begin = time.process_time()
    found = read_ranklib(content % text)

    assert found.forest.leaves.tolist() == [0.5]
    assert time.process_time() - begin < MOST_SECONDS
