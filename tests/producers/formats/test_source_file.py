"""Packed files: told by their bytes, and refused where they are cut off."""

import gzip
import os
import stat

import pytest
import zstandard

from producers.formats.source_file import FileUnreadable, created, lines_of, opened

LINES = [f"line {number} of a file".encode() for number in range(20_000)]
CONTENT = b"\n".join(LINES)

PACKERS = {
    "plain": lambda content: content,
    "gzip": gzip.compress,
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
    "two zstd frames": lambda content: (
        zstandard.ZstdCompressor().compress(content[:1_000])
        + zstandard.ZstdCompressor().compress(content[1_000:])
    ),
}


@pytest.mark.parametrize("packing", PACKERS)
def test_content_is_the_same_however_it_is_packed(packing, tmp_path):
    """The name of the file does not matter."""
    path = tmp_path / "file"
    path.write_bytes(PACKERS[packing](CONTENT))
    with opened(path) as file:
        assert file.read() == CONTENT
    assert [line for _, line in lines_of(path)] == LINES


@pytest.mark.parametrize("packing", ["gzip", "zstd", "two zstd frames"])
@pytest.mark.parametrize("share", [0.3, 0.9, 0.999])
def test_a_file_that_is_cut_off_is_refused(packing, share, tmp_path):
    """It never passes for a shorter one."""
    path = tmp_path / "file"
    packed = PACKERS[packing](CONTENT)
    path.write_bytes(packed[: int(len(packed) * share)])
    with pytest.raises(FileUnreadable, match="to its end"):
        list(lines_of(path))


@pytest.mark.parametrize("packing", ["gzip", "zstd"])
def test_a_damaged_file_is_refused(packing, tmp_path):
    """Wherever the damage is."""
    packed = bytearray(PACKERS[packing](CONTENT))
    packed[len(packed) // 2] ^= 0xFF
    packed[len(packed) // 2 + 1] ^= 0xFF
    path = tmp_path / "file"
    path.write_bytes(packed)
    with pytest.raises(FileUnreadable):
        list(lines_of(path))


@pytest.mark.parametrize("name", ["new", "new.gz", "new.zst"])
def test_a_new_file_is_packed_as_it_is_called(name, tmp_path):
    """And reads back."""
    path = tmp_path / name
    with created(path) as file:
        file.write(CONTENT)
    with opened(path) as file:
        assert file.read() == CONTENT
    assert (path.stat().st_size < len(CONTENT)) == (name != "new")


def test_nobody_but_its_owner_may_read_a_new_file(tmp_path):
    """Neither where one was there before, nor while it is written."""
    path = tmp_path / "new"
    for part in (path, tmp_path / ".new.part"):
        part.write_bytes(b"old")
        part.chmod(0o644)
    with created(path) as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600
        file.write(CONTENT)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes() == CONTENT


def test_a_new_file_that_fails_leaves_nothing_behind(tmp_path):
    """Neither the file nor its part."""

    def write_and_fail():
        with created(tmp_path / "new") as file:
            file.write(b"half")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        write_and_fail()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_not_there_is_named(tmp_path):
    """With its path."""
    with pytest.raises(FileUnreadable, match="nowhere"):
        opened(tmp_path / "nowhere")
