"""`rewindow detect`: the contract of its JSON, words for people, exit codes, memory."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from replay.cli import main
from replay.import_report import FATES, fate_of, grouped

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "datasets" / "samples"
GOOD = [{"type": "user", "uuid": "u1", "parentUuid": None, "sessionId": "s-1", "message": {"role": "user", "content": "go"}},
        {"type": "assistant", "uuid": "u2", "parentUuid": "u1", "sessionId": "s-1", "message": {
            "id": "m1", "role": "assistant", "model": "m", "content": [{"type": "text", "text": "done"}],
            "usage": {"input_tokens": 5, "output_tokens": 2}}}]
LINES = [json.dumps(row) for row in GOOD]


def run(*words: str | Path) -> int:
    """Run the command line; its exit code."""
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    return int(ended.value.code or 0)


def answer(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, dict[str, Any]]:
    """Exit code and document of `detect --json`."""
    code = run("detect", *words, "--json")
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, document


def put(folder: Path, **files: str) -> None:
    """Files by name, a double underscore for the dot."""
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def test_the_contract_of_the_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every promised key is there, on the bundled sessions."""
    code, document = answer(capsys, SAMPLES / "claude-code", SAMPLES / "codex")
    session = document["sessions"][0]
    compactions = [c for s in document["sessions"] for c in s["compactions"]]

    assert 0 == code
    assert {"sessions", "unreadable", "skipped", "summary"} == set(document)
    assert {"path", "format", "session_id", "harness_version", "model", "messages", "steps", "tool_calls", "human_prompts",
            "subagents", "usage", "peak_input_tokens", "compactions", "outcome", "notes", "parent_session", "reader",
            "counted_elsewhere"} <= set(session)
    assert {"requests", "input_uncached", "cache_read", "cache_write_5m", "cache_write_1h", "output"} == set(session["usage"])
    assert all({"step", "kind", "trigger", "tokens_before", "tokens_after", "counter_before", "summary_readable"} <= set(c)
               for c in compactions)
    assert len(document["sessions"]) == document["summary"]["sessions"]


DAMAGED = {
    "cut__jsonl": ("\n".join(LINES)[:-20], "left-out", "cut-tail"),
    "bad__jsonl": (f"{LINES[0]}\nnonsense\n{LINES[1]}", "left-out", "bad-json"),
    "escape__jsonl": (LINES[0].replace('"go"', '"g\\o"') + "\n" + LINES[1], "repaired", "bad-escape"),
    "new__jsonl": ("\n".join([*LINES, '{"type": "zz-new", "sessionId": "s-1"}']), "unknown", "unknown-type")}


@pytest.mark.parametrize("name", DAMAGED)
def test_strict_finds_damage_and_unknown_records(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without --strict a damaged line is a note and exit 0; with it exit 1."""
    text, fate, code = DAMAGED[name]
    put(tmp_path, **{name: text})
    ended, document = answer(capsys, tmp_path)

    assert 0 == ended
    assert [(code, fate)] == [(n["code"], n["fate"]) for n in document["sessions"][0]["notes"]]
    assert 1 == document["summary"]["notes"][fate]
    assert 1 == run("detect", tmp_path, "--strict")


def test_strict_lets_pass_what_is_only_worth_knowing(tmp_path: Path) -> None:
    """Records written twice and a file that begins in the middle are no faults of the file."""
    put(tmp_path, twice__jsonl="\n".join([*LINES, LINES[1]]), middle__jsonl=LINES[1])

    assert 0 == run("detect", tmp_path, "--strict")


def test_exit_codes_of_inputs_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Named files that are no sessions end in 3; beside good ones in a folder they do not."""
    put(tmp_path, good__jsonl="\n".join(LINES), other__json='{"a": 1}', text__jsonl="hello", empty__jsonl="")
    ended, document = answer(capsys, tmp_path)

    assert 0 == ended
    assert ["empty.jsonl", "other.json"] == sorted(Path(e["path"]).name for e in document["skipped"])
    assert ["text.jsonl"] == [Path(e["path"]).name for e in document["unreadable"]]
    assert 1 == run("detect", tmp_path, "--strict")
    for name in ("other.json", "text.jsonl", "empty.jsonl", "none.jsonl"):
        assert 3 == run("detect", tmp_path / name)
        assert 3 == run("detect", tmp_path / "good.jsonl", tmp_path / name)
    assert 3 == run("detect", tmp_path / "other.json", "--json")
    (tmp_path / "good.jsonl").unlink()
    assert 3 == run("detect", tmp_path)


def test_one_session_from_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A dash reads standard input."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(LINES).encode())))
    ended, document = answer(capsys, "-")

    assert (0, "<stdin>", "claude-code") == (ended, document["sessions"][0]["path"], document["sessions"][0]["format"])


def test_the_report_speaks_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was repaired, left out and unknown is named with lines and a hint; the last line sums up."""
    bad = "\n".join([LINES[0], *["nonsense"] * 9, '{"type": "zz-new", "sessionId": "s-1"}', LINES[1] + LINES[1]])
    put(tmp_path, bad__jsonl=bad, other__json='{"a": 1}')

    assert 0 == run("detect", tmp_path)
    said = capsys.readouterr().out
    assert "could not be read and was left out: bad-json x 9 (lines 2, 3, 4, 5, 6, …)" in said
    assert "of a kind that no reader knows: unknown-type (line 11): unknown record type 'zz-new'" in said
    assert "read after a repair: glued-values (line 12)" in said
    assert "other.json: no session: no known transcript format; keys seen: a" in said
    assert said.strip().splitlines()[-1].startswith("1 session in 2 files; 1 note: read after a repair; 9 notes: could not be")


def test_copies_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where a session's requests are billed."""
    long = [json.dumps(row | {"message": row["message"] | {"id": "message-0001"}}) for row in GOOD]  # type: ignore[operator]
    put(tmp_path, a__jsonl="\n".join(long), b__jsonl="\n".join(long))

    assert 0 == run("detect", tmp_path)
    assert "counted elsewhere: 1 requests are also in" in capsys.readouterr().out


def test_no_text_of_a_transcript_reaches_the_terminal_raw(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Control characters in names and notes are shown, not sent."""
    put(tmp_path, evil__jsonl="\n".join([*LINES, '{"type": "\\u001b[31mred", "sessionId": "s-1"}']))

    assert 0 == run("detect", tmp_path)
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize(("code", "fate"), [
    ("bad-utf8", "repaired"), ("loose-json", "repaired"), ("bad-record", "left-out"), ("not-an-event", "left-out"),
    ("unreadable-file", "left-out"), ("unknown-role", "unknown"), ("missing-parent", "incomplete"), ("no-header", "incomplete"),
    ("duplicate", "told"), ("made-up-by-an-own-reader", "told")])
def test_fates(code: str, fate: str) -> None:
    """What became of a record is told from the code of its note."""
    assert fate == fate_of(code)


def test_notes_are_grouped_by_what_became_of_the_records() -> None:
    """One line a kind, but one for each unknown type; worst first is not the order, the order of the fates is."""
    notes = [{"code": c, "text": t, "line": n} for n, (c, t) in enumerate([
        ("unknown-type", "a"), ("bad-json", "x"), ("unknown-type", "b"), ("bad-json", "y"), ("duplicate", "d")])]
    groups = dict(grouped(notes))

    assert ["left-out", "unknown", "told"] == list(groups)
    assert [2, 1, 1, 1] == [g.count for found in groups.values() for g in found]
    assert set(groups) <= set(FATES)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_a_folder_is_read_in_bounded_memory(tmp_path: Path) -> None:
    """Forty files need hardly more memory than four."""
    row = json.dumps(GOOD[0] | {"message": {"role": "user", "content": "word " * 20_000}}).replace("s-1", "s-%d")
    for number in range(40):
        text = "\n".join(row.replace('"u1"', f'"u{number}-{n}"') % number for n in range(12))
        (tmp_path / f"{number:02}.jsonl").write_text(text)
    code = ("import sys\nfrom pathlib import Path\nfrom replay.find import find\n"
            "from replay.importing import import_files\nimport_files(find(sys.argv[1:]))\n"
            "status = dict(line.split(':') for line in Path('/proc/self/status').read_text().splitlines())\n"
            "print(status['VmHWM'].split()[0])")
    files = [str(tmp_path / f"{n:02}.jsonl") for n in range(40)]
    few, many = (int(subprocess.run([sys.executable, "-c", code, *part], capture_output=True, text=True, check=True,
                                    cwd=ROOT).stdout) for part in (files[:4], files))

    assert many < few * 1.15
