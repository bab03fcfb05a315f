"""Line files that are damaged in every way we know: each good record survives, each loss has a note with its place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from replay.readers.source import Source, parse_source

A = {"type": "user", "uuid": "a", "message": {"role": "user", "content": 'say "hi" {\\"x\\":1} [1, 2]'}}
B = {"type": "assistant", "uuid": "b", "message": {"role": "assistant", "content": [{"type": "text", "text": "tö"}]}}
LINE_A, LINE_B = (json.dumps(value, ensure_ascii=False) for value in (A, B))


def source(*lines: str | bytes, end: str = "\n") -> Source:
    """Lines as a file."""
    return parse_source(end.encode().join(x if isinstance(x, bytes) else x.encode() for x in lines), "x.jsonl")


def ids(found: Source) -> list[Any]:
    """What the records are known by."""
    return [r.value.get("uuid") if isinstance(r.value, dict) else r.value for r in found.records]


def codes(found: Source) -> list[tuple[str, int | None]]:
    """The notes with their lines."""
    return [(n.code, n.line) for n in found.notes]


def test_intact_lines_have_no_notes() -> None:
    """Numbers and offsets count from 1 and 0, blank lines and CR included."""
    found = source(LINE_A + "\r", "", "  \r", LINE_B)

    assert [A, B] == [r.value for r in found.records]
    assert [(1, 0), (4, len(LINE_A.encode()) + 2 + 1 + 4)] == [(r.line, r.byte) for r in found.records]
    assert () == found.notes
    assert not found.is_document


@pytest.mark.parametrize("data", [b"", b"\n", b"\n \r\n\t\n\n", b"   "])
def test_files_of_blanks_hold_nothing(data: bytes) -> None:
    """An empty file and one of blank lines have no records and nothing to complain about."""
    found = parse_source(data, "x")

    assert ((), ()) == (found.records, found.notes)


@pytest.mark.parametrize("space", ["\u2028", "\u2029", "\x85", "\x1c\x1d", "\x0b\x0c"])
def test_only_line_feeds_end_lines(space: str) -> None:
    """Other line ends of Unicode, raw in a string, are text."""
    found = source(f'{{"uuid":"one{space}two"}}', LINE_A)

    assert [f"one{space}two", "a"] == ids(found)


def test_glued_records_are_both_read() -> None:
    """Two or three records on one line, with or without space between them, are records of that line."""
    found = source(LINE_A + LINE_B, LINE_A, LINE_B + " \t" + LINE_A + LINE_B)

    assert ["a", "b", "a", "b", "a", "b"] == ids(found)
    assert [1, 1, 2, 3, 3, 3] == [r.line for r in found.records]
    assert [("glued-values", 1), ("glued-values", 3)] == codes(found)


@pytest.mark.parametrize(("cut", "whole"), [(LINE_A, LINE_B), (LINE_B, LINE_A)])
def test_a_cut_record_never_costs_the_one_behind_it(cut: str, whole: str) -> None:
    """Wherever a record is cut, the record that was appended to it on the same line is read, and nothing else."""
    expected = [json.loads(whole)["uuid"], json.loads(cut)["uuid"]]
    for length in range(1, len(cut)):
        found = source(LINE_A, LINE_B, cut[:length] + whole, cut)

        assert ["a", "b", *expected] == ids(found), cut[:length]
        assert ("bad-json", 3) in codes(found)


@pytest.mark.parametrize("line", [LINE_A, LINE_B])
def test_a_cut_tail_is_a_note_and_no_record(line: str) -> None:
    """Wherever the last record is cut, the records before it stay and the note says where it began."""
    for length in range(1, len(line)):
        found = source(LINE_A, line[:length])

        assert ["a"] == ids(found), line[:length]
        assert [("cut-tail", 2, len(LINE_A.encode()) + 1)] == [(n.code, n.line, n.byte) for n in found.notes]


def test_a_cut_tail_is_not_merged_into_a_later_append() -> None:
    """A writer that comes back behind a cut record: with a line break or without, only the cut record is lost."""
    for between in ("", "\n", "\r\n"):
        found = source(LINE_B, LINE_A[:50] + between + LINE_B, LINE_A)

        assert ["b", "b", "a"] == ids(found)
        assert {"bad-json"} == {code for code, _ in codes(found)}


def test_a_good_record_before_a_cut_one_on_its_line_stays() -> None:
    """In the middle of the file that is a bad line, at its end a cut tail."""
    middle, end = source(LINE_A + LINE_B[:40], LINE_A), source(LINE_A, LINE_A + LINE_B[:40])

    assert (["a", "a"], [("bad-json", 1)]) == (ids(middle), codes(middle))
    assert (["a", "a"], [("cut-tail", 2)]) == (ids(end), codes(end))


@pytest.mark.parametrize(("before", "after"), [
    ("2026-01-01 INFO: ", ""), ("", "}}"), ("", " garbage"), ("data: ", ""), ("]", ""), ('"', ""), ("", ","),
    ("12,", "")])
def test_text_around_a_record_is_left_out(before: str, after: str) -> None:
    """A prefix of a log, stray brackets, a comma: the record on the line is read."""
    found = source(LINE_B, before + LINE_A + after, LINE_B)

    assert ["b", "a", "b"] == ids(found)
    assert [2] == [line for _, line in codes(found)]


def test_a_part_of_a_cut_record_is_no_record() -> None:
    """A whole object at the end of a cut record stays a part of it, unless it has the keys of the file's records."""
    found = source(LINE_A, LINE_B[:LINE_B.index("}]") + 1], '{"k":{"type":"user","uuid":"x","message":{}}', LINE_A)

    assert ["a", "x", "a"] == ids(found)
    assert [("bad-json", 2), ("bad-json", 3)] == codes(found)


@pytest.mark.parametrize(("text", "value"), [
    ("a\\[b", "a\\[b"), ("\\x41", "\\x41"), ("C:\\Users", "C:\\Users"), ("\\u12", "\\u12"),
    ("\\\\ \\d \\n", "\\ \\d \n")])
def test_invalid_escapes_are_plain_backslashes(text: str, value: str) -> None:
    """What a redactor leaves behind is read as it looks."""
    found = source(LINE_A, f'{{"uuid":"{text}"}}', LINE_B)

    assert ["a", value, "b"] == ids(found)
    assert [("bad-escape", 2)] == codes(found)


@pytest.mark.parametrize(("text", "value"), [
    ("\\ud83d", "�"), ("\\ude00x", "�x"), ("\\ud83d\\ud83d\\ude00", "�😀"), ("\\uDBFF!", "�!")])
def test_lone_surrogates_are_replaced(text: str, value: str) -> None:
    """Halves of pairs become the replacement character; pairs stay."""
    found = source(f'{{"uuid":"{text}"}}', LINE_A)

    assert [value, "a"] == ids(found)
    assert [("lone-surrogate", 1)] == codes(found)


def test_escaped_backslashes_make_no_surrogates() -> None:
    """A backslash that is escaped begins no escape."""
    assert ["\\ud83d", "a"] == ids(source('{"uuid":"\\\\ud83d"}', LINE_A))


def test_numbers_that_json_does_not_have() -> None:
    """NaN and infinities are null, whole numbers beyond 64 bits floats, others that no float can hold null."""
    found = source('{"v":[NaN,Infinity,-Infinity,1e999]}', '{"v":[123456789012345678901234567890, NaN]}',
                   f'{{"v":[{"9" * 5000}]}}', LINE_A)

    expected = [[None] * 4, [123456789012345678901234567890.0, None], [None]]
    assert expected == [r.value.get("v") for r in found.records[:3]]
    assert [("loose-json", 1), ("loose-json", 2), ("loose-json", 3)] == codes(found)


def test_of_repeated_keys_the_last_counts() -> None:
    """On the fast path and on the slow one."""
    found = source('{"uuid":"1","uuid":"2"}', '{"uuid":"1","x":NaN,"uuid":"2"}', '{"uuid":"1","uuid":"2"}' + LINE_A)

    assert ["2", "2", "2", "a"] == ids(found)


@pytest.mark.parametrize("text", ["a\tb", "a\x01b", "a\x1bb"])
def test_raw_control_characters_are_text(text: str) -> None:
    """Control characters in strings, which strict decoders refuse."""
    found = source(f'{{"uuid":"{text}"}}', LINE_A)

    assert ([text, "a"], [("loose-json", 1)]) == (ids(found), codes(found))


def test_nul_bytes_are_dropped() -> None:
    """NULs before, in and behind records, lines of nothing else, and a file of nothing else."""
    found = source(b"\x00\x00" + LINE_A.encode(), LINE_B.replace("tö", "t\x00ö"), b"\x00" * 512, LINE_A, b"\x00" * 9)

    assert ["a", "b", "a"] == ids(found)
    assert B == found.records[1].value
    assert [("nul-bytes", 1), ("nul-bytes", 2), ("nul-bytes", 3), ("nul-bytes", 5)] == codes(found)
    assert () == source(b"\x00" * 100).records


@pytest.mark.parametrize("raw", [b"caf\xe9", b"\xff\xfe", b"\xe4\xb8", b"\xed\xa0\x80"])
def test_bytes_that_are_not_utf8_are_replaced(raw: bytes) -> None:
    """Latin-1, stray bytes, half characters and encoded surrogates cost no line; the note counts them."""
    found = source(b'{"uuid":"' + raw + b'"}', LINE_A)

    assert ["a"] == ids(found)[1:]
    assert "�" in ids(found)[0]
    assert [("bad-utf8", 1)] == codes(found)
    assert f"x {ids(found)[0].count('�')}" in found.notes[0].text


@pytest.mark.parametrize(("opener", "closer"), [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")])
def test_deep_nesting_is_kept_as_text(opener: str, closer: str) -> None:
    """What no decoder can follow is text from a depth on; the rest of the record and the next line are as ever."""
    deep = opener * 3000 + "0" + closer * 3000
    found = source(f'{{"uuid":"d","x":{deep},"y":1}}', LINE_A, f'{{"uuid":"e","x":{deep}')

    assert ["d", "a"] == ids(found)
    assert 1 == found.records[0].value["y"]
    assert [("too-deep", 1), ("cut-tail", 3)] == codes(found)


@pytest.mark.parametrize("text", [
    "[" * 200_000, '{"a":' * 100_000, '{"a":["b",' * 50_000, '{"a"' * 50_000, "}" * 100_000])
def test_hopeless_lines_end_in_time(text: str) -> None:
    """Brackets without end are one note, not an hour."""
    found = source(LINE_A, text, LINE_B)

    assert ["a", "b"] == ids(found)
    assert {2} == {line for _, line in codes(found)}


LONG = json.dumps({"uuid": "long", "text": "abcd efgh " * 5_000_000})


@pytest.mark.parametrize(("line", "known", "note"), [
    (LONG, ["a", "long", "b"], []), (LONG.replace("abcd", "\\[", 1), ["a", "long", "b"], ["bad-escape"]),
    (LONG[:-10], ["a", "b"], ["bad-json"]), (LONG[:-10] + LINE_A, ["a", "a", "b"], ["bad-json"])])
def test_lines_of_fifty_megabytes(line: str, known: list[str], note: list[str]) -> None:
    """Intact, with a bad escape, cut, and cut with a record behind it."""
    found = source(LINE_A, line, LINE_B)

    assert known == ids(found)
    assert note == [code for code, _ in codes(found)]


def test_values_that_are_no_objects_are_records() -> None:
    """A reader must see them to say what it left out; text that is no JSON is a note."""
    found = source("1", '"text"', "null", "[1]", "text", LINE_A)

    assert [1, "text", None, [1], "a"] == ids(found)
    assert [("bad-json", 5)] == codes(found)


def test_an_append_in_another_encoding_is_read() -> None:
    """A shell that appends UTF-16 to a UTF-8 file costs no record."""
    for encoding in ("utf-16-le", "utf-16-be"):
        found = source(LINE_A, (LINE_B + "\r\n" + LINE_A + "\r\n").encode(encoding))

        assert ["a", "b", "a"] == ids(found)
        assert B == found.records[1].value
        assert ("encoding", 2) in codes(found)
