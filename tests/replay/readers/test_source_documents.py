"""JSON documents: told from lines, repaired, and read without their bad spots."""

from __future__ import annotations

import json
from typing import Any

import pytest

from replay.readers.source import Source, parse_source

MESSAGES = [{"role": "user", "content": f"message {n}", "parts": [{"x": n}, {"y": [1, 2, {"z": "q"}]}]}
            for n in range(4)]
DOCUMENT = {"info": {"id": "s", "time": {"a": 1, "b": 2}, "title": "t"}, "messages": MESSAGES}


def parse(text: str) -> Source:
    """Text as a file."""
    return parse_source(text.encode(), "x.json")


def contents(found: Source) -> list[str]:
    """The contents of the messages that were read."""
    return [m["content"] for m in found.document["messages"]]


@pytest.mark.parametrize(("text", "is_document"), [
    ('{"messages":[{"role":"user"}]}', True), ('[{"role":"user"}]', True), ("[]", True), ('{"a":1}', True),
    ('{"type":"user","uuid":"u"}', False), ('{"role":"user","content":"x"}', False), ('{"event_type":"x"}', False),
    ('{"type":"messages","messages":[{}]}', True), ('{"a":1}\n{"a":2}', False), ('{"type":"x"}\n\n', False),
    ('\n\n{"a":\n1}\n', True), ("1", False), ('"x"', False)])
def test_documents_are_told_from_lines(text: str, is_document: bool) -> None:
    """A single line is a document unless it could be the only record of a log."""
    found = parse(text)

    assert is_document == found.is_document
    assert () == found.notes
    assert (found.records[0].value if is_document else None) == found.document


DAMAGES = [
    ('"message 1"', '"message 1'), ('"message 1"', 'message 1"'), ('"message 1"', "message 1"),
    ('"message 1"', '"mess"age 1"'), ('"message 1"', "nope"), ('"message 1"', ""), ('"message 1"', "{"),
    ('"message 1"', "}"), ('"message 1"', "]")]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(("good", "bad"), DAMAGES)
def test_one_bad_spot_costs_one_message(good: str, bad: str, indent: int | None) -> None:
    """On one line or laid out: a lost or an added quote, bare words, stray brackets."""
    found = parse(json.dumps(DOCUMENT, indent=indent).replace(good, bad, 1))

    assert found.is_document
    left = contents(found)
    assert ["message 0", "message 3"] == [left[0], left[-1]]
    assert set(left) <= {m["content"] for m in MESSAGES}
    assert len(left) >= (3 if bad not in "{}]" or not bad else 2)
    assert "bad-json" in [n.code for n in found.notes]


@pytest.mark.parametrize(("good", "bad", "where"), [
    ('"b": 2', '"b": nope', "info.time.b"), ('"b": 2', '"b" 2', "info.time.?"), ('"id": "s"', 'id: "s"', "info.?"),
    ('"z": "q"', '"z": "q', "messages[0].parts[1].y[2]")])
def test_damage_elsewhere_costs_no_message(good: str, bad: str, where: str) -> None:
    """A member that cannot be read is left out; the note names it and its line."""
    text = json.dumps(DOCUMENT, indent=2).replace(good, bad, 1)
    found = parse(text)
    note = found.notes[0]

    assert [m["content"] for m in MESSAGES] == contents(found)
    assert f"{where} was left out" in note.text
    assert bad in text.splitlines()[(note.line or 0) - 1]
    assert text.splitlines()[(note.line or 0) - 1] == text[note.byte:].splitlines()[0]


@pytest.mark.parametrize("indent", [None, 1])
def test_a_cut_document_keeps_what_was_complete(indent: int | None) -> None:
    """Wherever it is cut behind the first message, all complete messages are there and the note says that it is cut."""
    text = json.dumps(DOCUMENT, indent=indent)
    for length in range(text.index("message 1"), len(text)):
        found = parse(text[:length])
        complete = [m for m in MESSAGES if text.index(m["content"]) + len(m["content"]) + 2 < length]

        assert found.is_document
        assert len(complete) - 1 <= len(contents(found)) <= len(complete)
        assert MESSAGES[:len(complete) - 1] == found.document["messages"][:len(complete) - 1]
        assert "cut-tail" in [n.code for n in found.notes]


def test_a_cut_record_of_a_log_is_no_document() -> None:
    """Lists deep in a record do not make it one."""
    content = [{"type": "text", "text": "a"}, {"type": "text"}]
    record = {"type": "assistant", "uuid": "u", "message": {"content": content}}
    text = json.dumps(record)
    for length in range(1, len(text)):
        found = parse(text[:length])

        assert ((), ["cut-tail"]) == (found.records, [n.code for n in found.notes])


@pytest.mark.parametrize(("old", "new", "code"), [
    ("message 1", "mess\\[age 1", "bad-escape"), ("message 1", "mess\x01age 1", "loose-json"),
    ("message 1", "mess\x00age 1", "nul-bytes"), ("message 1", "mess\\ud800age 1", "lone-surrogate"),
    ('"b": 2', '"b": NaN', "")])
@pytest.mark.parametrize("indent", [None, 2])
def test_documents_are_repaired(old: str, new: str, code: str, indent: int | None) -> None:
    """What can be repaired costs nothing, and the note names the line."""
    text = json.dumps(DOCUMENT, indent=indent).replace(old, new, 1)
    found = parse(text)

    assert 4 == len(contents(found))
    assert [text[:text.index(new)].count("\n") + 1] * len(found.notes) == [n.line for n in found.notes]
    assert [code] * bool(code) == [n.code for n in found.notes if code]


def test_arrays_of_one_record_a_line_lose_one_record() -> None:
    """A list whose entries stand a line each, cut or with a bad entry in the middle."""
    entries = [json.dumps({"id": n, "action": "run", "args": {"command": f"echo {n}"}}) for n in range(5)]
    for opener in ("[\n", "["):
        cut = parse(opener + ",\n".join(entries)[:-20])
        bad = parse(opener + ",\n".join([*entries[:2], entries[2][:-9], *entries[3:]]) + "\n]")

        assert [0, 1, 2, 3] == [e["id"] for e in cut.document]
        assert [0, 1, 3, 4] == [e["id"] for e in bad.document]
        assert [["cut-tail"], ["bad-json"]] == [sorted({n.code for n in f.notes}) for f in (cut, bad)]


def test_deep_documents_are_kept_as_text_below() -> None:
    """A value nested deeper than any decoder follows does not cost the document."""
    text = json.dumps(DOCUMENT, indent=1).replace('"b": 2', '"b": ' + "[" * 4000 + "]" * 4000)
    found = parse(text)

    assert 4 == len(contents(found))
    assert ["too-deep"] == [n.code for n in found.notes]


@pytest.mark.parametrize("text", [
    "{", "[", "[[[", "{}{}{", '{"a', "[{]}", "[}" * 50, '{"a":[{' * 60, "\n\n[\n1\n2", "{\n\n\n", '["'])
def test_fragments_are_refused_quietly(text: str) -> None:
    """Nothing useful, nothing raised."""
    found = parse(text)

    assert found.notes or not found.records or found.document is not None


def test_many_bad_spots_are_counted() -> None:
    """Beyond twenty the rest is one note."""
    document: dict[str, Any] = {"messages": [{"role": "user", "content": n} for n in range(100)]}
    text = json.dumps(document, indent=1).replace('"content": ', '"content": ?', 60)
    found = parse(text)

    assert 40 == len(found.document["messages"])
    assert 21 == len(found.notes)
    assert "40 more" in found.notes[-1].text
