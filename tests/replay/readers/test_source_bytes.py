"""Encodings and archives: the same records come out, and everything before the first damaged byte."""

from __future__ import annotations

import codecs
import gzip
import json
import random
from pathlib import Path

import pytest
import zstandard

from replay.errors import ReadError
from replay.readers.archives import head_of
from replay.readers.source import Source, open_source, parse_source

LINES = [json.dumps({"uuid": f"u{n}", "text": text}, ensure_ascii=False) for n, text in enumerate(
    ["plain", "ünïcode", "日本語", "Gurmukhi ਅ一ਅ一 end", "emoji 😀", "u2028 \u2028 inside"])]
TEXT = "\n".join(LINES) + "\n"
VALUES = [json.loads(line) for line in LINES]


def values(found: Source) -> list[object]:
    """The records' values."""
    return [record.value for record in found.records]


def codes(found: Source) -> list[str]:
    """The codes of the notes."""
    return [note.code for note in found.notes]


@pytest.mark.parametrize(("encoding", "note"), [
    ("utf-8-sig", "byte-order-mark"), ("utf-16", "byte-order-mark"), ("utf-32", "byte-order-mark"),
    ("utf-16-le", "encoding"), ("utf-16-be", "encoding"), ("utf-32-le", "encoding"), ("utf-32-be", "encoding")])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_encodings(encoding: str, note: str, end: str) -> None:
    """Each encoding is told from the bytes; offsets are those of the file as it stands."""
    data = TEXT.replace("\n", end).encode(encoding)
    found = parse_source(data, "x")

    assert VALUES == values(found)
    assert [note] == codes(found)
    plain = encoding.removesuffix("-sig")
    name = {"utf-16": "utf-16-le", "utf-32": "utf-32-le"}.get(plain, plain)
    assert all(data[r.byte:].startswith('{"uuid'.encode(name)) for r in found.records)


@pytest.mark.parametrize("mark", [codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE])
def test_big_endian_marks(mark: bytes) -> None:
    """Marks of both byte orders are known."""
    encoding = "utf-16-be" if len(mark) == 2 else "utf-32-be"

    assert VALUES == values(parse_source(mark + TEXT.encode(encoding), "x"))


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_a_lost_byte_of_a_wide_encoding_costs_one_line(encoding: str) -> None:
    """Lines behind a lost or an added byte are read although their characters begin elsewhere."""
    line = LINES[1].encode(encoding)
    for damaged in (line[:20] + line[21:], line[:20] + b"\x07" + line[20:]):
        parts = [LINES[0].encode(encoding), damaged, *(x.encode(encoding) for x in LINES[2:])]
        data = "\n".encode(encoding).join(parts)
        found = parse_source(data, "x")

        assert [VALUES[0], *VALUES[2:]] == values(found)
        assert "bad-json" in codes(found)


def test_a_mark_in_the_middle_is_skipped() -> None:
    """Files joined together bring their marks with them."""
    found = parse_source("\ufeff".join(line + "\n" for line in ["", *LINES]).encode(), "x")

    assert VALUES == values(found)


def test_a_broken_half_of_a_pair_in_utf16_is_replaced() -> None:
    """A lone surrogate in UTF-16 costs a character."""
    found = parse_source('{"text":"a\ud800b"}\n{"text":"c"}'.encode("utf-16", "surrogatepass"), "x")

    assert [{"text": "a�b"}, {"text": "c"}] == values(found)
    assert ["byte-order-mark", "bad-utf8"] == codes(found)


def test_nul_blocks_are_no_wide_encoding() -> None:
    """A block of NULs in front of UTF-8, as a crash leaves it."""
    for count in (1, 2, 3, 4, 64, 4096):
        found = parse_source(b"\x00" * count + TEXT.encode(), "x")

        assert VALUES == values(found)
        assert ["nul-bytes"] == codes(found)


def test_characters_on_any_boundary(tmp_path: Path) -> None:
    """However long the text before it, a character of four bytes arrives whole, packed or not."""
    for length in [*range(0, 9), *range((1 << 16) - 12, (1 << 16) + 4), (1 << 20) - 9]:
        value = {"text": "x" * length + "😀é日"}
        plain = json.dumps(value, ensure_ascii=False).encode()
        for name, data in (("a.jsonl", plain), ("a.gz", gzip.compress(plain, 1)), ("a.zst", zstandard.compress(plain))):
            (tmp_path / name).write_bytes(data)

            assert [value] == values(open_source(tmp_path / name))


DRAW = random.Random(3)
MANY = [{"n": n, "text": "".join(DRAW.choices("abcdefghij klmnop", k=200))} for n in range(3000)]
PLAIN = "".join(json.dumps(value) + "\n" for value in MANY).encode()
PACKED = {"gzip": gzip.compress(PLAIN), "zstd": zstandard.compress(PLAIN),
          "gzip members": b"".join(gzip.compress(PLAIN[at:at + 70_001]) for at in range(0, len(PLAIN), 70_001)),
          "zstd frames": b"".join(zstandard.compress(PLAIN[at:at + 70_001]) for at in range(0, len(PLAIN), 70_001))}


@pytest.mark.parametrize("kind", PACKED)
def test_archives_are_unpacked(kind: str) -> None:
    """One part or many, without a note."""
    found = parse_source(PACKED[kind], "x")

    assert (MANY, ()) == (values(found), found.notes)
    assert len(PLAIN) == found.size_bytes


@pytest.mark.parametrize("share", [0.4, 0.75, 0.999])
@pytest.mark.parametrize("kind", PACKED)
def test_a_cut_archive_gives_what_was_packed_before(kind: str, share: float) -> None:
    """All records up to the cut are read, and one note says that the archive is cut."""
    found = parse_source(PACKED[kind][:int(len(PACKED[kind]) * share)], "x")
    whole = [value for value in values(found) if isinstance(value, dict)]

    assert "cut-archive" == codes(found)[0]
    assert whole == MANY[:len(whole)]
    assert len(whole) >= int(len(MANY) * share) - (1000 if kind.startswith("zstd") else 120)


def test_a_damaged_archive_gives_what_stands_before_the_damage() -> None:
    """Deflated data with another byte in the middle."""
    packed = bytearray(PACKED["gzip"])
    packed[len(packed) // 2] ^= 0xFF
    found = parse_source(bytes(packed), "x")
    good = [value for value in values(found) if value in (MANY[0], MANY[1000])]

    assert [MANY[0], MANY[1000]] == good
    assert "cut-archive" == codes(found)[0]


@pytest.mark.parametrize("rest", [b"\x00" * 512, b"junk", b"\x1f"])
def test_what_stands_behind_an_archive(rest: bytes) -> None:
    """Padding is nothing, anything else a note."""
    found = parse_source(PACKED["gzip"] + rest, "x")

    assert MANY == values(found)
    assert ([] if not rest.strip(b"\x00") else ["cut-archive"]) == codes(found)


@pytest.mark.parametrize("data", [
    b"\x1f\x8b", b"\x1f\x8b\x08\x00garbage!", b"\x28\xb5\x2f\xfd", b"\x28\xb5\x2f\xfd\xff\xff\xff"])
def test_an_archive_without_data_is_an_error(data: bytes) -> None:
    """Nothing to read is the one case that no note can tell."""
    with pytest.raises(ReadError, match="not readable as"):
        parse_source(data, "x")


def test_the_head_of_a_file_packed_or_not() -> None:
    """The first bytes are the same, and an archive that cannot be unpacked gives none."""
    for data in (PLAIN, *PACKED.values()):
        assert PLAIN[:1000] == head_of(data[:1 << 18], 1000)

    assert b"" == head_of(b"\x1f\x8bgarbage", 10)
