"""The bundled sessions: made again byte for byte, readable, and with the properties that the card promises."""

from __future__ import annotations

import hashlib
import itertools
import shutil
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from evals.samples import __main__ as command
from evals.samples import differences, make_all
from evals.samples.make import DATASETS, Sample
from evals.samples.quoting import concrete
from evals.samples.scenario import Action, action_of, expand
from evals.samples.workspace import Workspace
from replay.readers import read
from replay.tokens import TokenCounter, fit, tokenizer
from replay.transcript import Step, Thread, Transcript

MANIFEST = tomllib.loads((DATASETS / "manifest.toml").read_text(encoding="utf-8"))["session"]
LIMIT_BYTES = 4_000_000
CUT = "rainlog-crash"


@pytest.fixture(scope="module")
def made() -> list[Sample]:
    """Every sample, made again."""
    return make_all()


@pytest.fixture(scope="module")
def sessions() -> Mapping[str, Transcript]:
    """Every bundled session by its name, as its reader gives it."""
    return {row["name"]: read(DATASETS / row["path"])[0] for row in MANIFEST}


def test_made_again_they_are_the_same(made: list[Sample]) -> None:
    """The committed files are byte for byte what their scenarios give."""
    assert [] == list(differences(made, DATASETS))


def test_check_finds_a_change(made: list[Sample], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command ends with 1 and names the file where one byte is not as made; it writes nothing."""
    shutil.copytree(DATASETS, tmp_path / "data")
    place = tmp_path / "data" / made[0].path
    place.write_bytes(place.read_bytes() + b"\n")
    monkeypatch.setattr(command, "DATASETS", tmp_path / "data")
    monkeypatch.setattr(command, "make_all", lambda: made)

    found = CliRunner().invoke(command.main, ["--check"])

    assert (1, f"{made[0].path}: differs from what its scenario gives\n") == (found.exit_code, found.output)
    assert place.read_bytes().endswith(b"\n\n")


def test_a_file_without_a_scenario_is_found(made: list[Sample], tmp_path: Path) -> None:
    """A stray session and a missing one are both differences."""
    shutil.copytree(DATASETS, tmp_path / "data")
    (tmp_path / "data" / made[0].path).rename(tmp_path / "data" / "samples" / "pi" / "stray.jsonl")

    assert [f"{made[0].path}: missing", "samples/pi/stray.jsonl: no scenario gives it"] == list(
        differences(made, tmp_path / "data"))


def test_manifest_checksums_hold() -> None:
    """Each file of the manifest exists with its checksum and size, under our licence."""
    for row in MANIFEST:
        data = (DATASETS / row["path"]).read_bytes()

        assert row["sha256"] == hashlib.sha256(data).hexdigest()
        assert (row["bytes"], "MIT") == (len(data), row["licence"])


def test_the_data_folder_holds_no_python_and_is_small() -> None:
    """No Python and no caches lie below the data folder, and it stays under four megabytes."""
    files = [path for path in DATASETS.rglob("*") if path.is_file()]

    assert [] == [path for path in files if path.suffix in (".py", ".pyc") or "__pycache__" in path.parts]
    assert sum(path.stat().st_size for path in files) < LIMIT_BYTES


def test_there_are_enough_of_them() -> None:
    """Eight sessions or more in five formats or more."""
    assert len(MANIFEST) >= 8
    assert len({row["format"] for row in MANIFEST}) >= 5


@pytest.mark.parametrize("row", MANIFEST, ids=lambda row: row["name"])
def test_readers_agree_with_the_manifest(row: dict[str, Any], sessions: Mapping[str, Transcript]) -> None:
    """Format, steps and compactions are read as they were recorded; only the cut tail is noted."""
    session = sessions[row["name"]]

    assert (row["format"], row["steps"], row["compactions"]) == (
        session.format, len(session.steps), len(session.compactions))
    assert (["cut-tail"] if row["name"] == CUT else []) == [note.code for note in session.notes]


@pytest.mark.parametrize("row", MANIFEST, ids=lambda row: row["name"])
def test_calls_and_results_pair(row: dict[str, Any], sessions: Mapping[str, Transcript]) -> None:
    """Each call has one result, and each result its call before it; only the cut session lacks its last one."""
    for thread in sessions[row["name"]].threads:
        calls = [call.id for call in thread.tool_calls()]
        results = [result.call_id for message in thread.messages for result in message.results]

        assert (1 if row["name"] == CUT else 0) == len(set(calls) - set(results))
        assert len(set(results)) == len(results)
        assert set(results) <= set(calls)


def _billed(session: Transcript) -> list[tuple[int, int]]:
    """(counted tokens of the recorded view, billed input) of the steps that no micro-compaction precedes."""
    counter = TokenCounter(tokenizer())
    sizes = counter.tokens(session.messages)
    found = []
    for step in session.steps:
        before = [c for c in session.compactions if c.position <= step.start]
        if step.usage is None or any(c.kind == "micro" for c in before):
            continue
        window = before[-1].window if before else ()
        kept = sum(sizes[item] if isinstance(item, int) else counter.tokens([item])[0] for item in window)
        start = before[-1].position if before else 0
        found.append((kept + sum(sizes[start:step.start]), step.usage.input_total))
    return found


@pytest.mark.parametrize(("name", "factor"), [
    ("long-refactoring", 1.15), ("parcels-oversize", 1.15), ("rainlog-crash", 1.15), ("rainlog-missing", 1.15),
    ("rainlog-drought", 1.15), ("parcels-discounts", 1.0), ("ledger-saldo", 1.0), ("ledger-payees", 1.0)])
def test_usage_is_a_count_of_the_view(name: str, factor: float, sessions: Mapping[str, Transcript]) -> None:
    """A calibrated counter finds the factor of the model and the overhead of 12,000 tokens."""
    pairs = _billed(sessions[name])
    found = fit([counted for counted, _ in pairs], [billed for _, billed in pairs])

    assert pytest.approx(factor, abs=0.005) == found.factor
    assert pytest.approx(12_000, abs=50) == found.overhead


def _written(step: Step) -> int:
    return step.usage.cache_write_5m + step.usage.cache_write_1h if step.usage else 0


def _reads(thread: Thread) -> list[tuple[int, int, int]]:
    """(step, tokens read, tokens that the request before had read or written) of every step but the first."""
    return [(later.number, later.usage.cache_read, earlier.usage.cache_read + _written(earlier))
            for earlier, later in itertools.pairwise(thread.steps) if earlier.usage and later.usage]


def test_the_cache_behaves(sessions: Mapping[str, Transcript]) -> None:
    """A warm request reads all that stood before; it is cold after each pause, and short after each compaction."""
    session = sessions["long-refactoring"]
    odd = [(read, before) for _, read, before in _reads(session.main) if read != before]
    cold = [pair for pair in odd if pair[0] == 0]

    assert (2, 2) == (len(cold), len(odd) - len(cold))
    assert {12_000} == {read for read, _ in odd if read}


def test_one_hour_writes_stay_warm_over_a_pause(sessions: Mapping[str, Transcript]) -> None:
    """No request after the first one is cold, although twenty minutes pass between two of them."""
    session = sessions["parcels-oversize"]
    gaps = [later.time - earlier.time for earlier, later in itertools.pairwise(session.steps)
            if earlier.time and later.time]

    assert max(gaps) > 1_200
    assert all(read > 0 for _, read, _ in _reads(session.main))
    assert (0, True) == (session.usage.cache_write_5m, session.usage.cache_write_1h > 0)


def test_the_long_session(sessions: Mapping[str, Transcript]) -> None:
    """Over 150 steps, two compactions after which the window is small, a todo list, a sub-agent, early rules."""
    session = sessions["long-refactoring"]
    billed = {step.start: step.usage.input_total for step in session.steps if step.usage}
    for compaction in session.compactions:
        before = max(start for start in billed if start < compaction.position)
        after = min(start for start in billed if start >= compaction.position)

        assert billed[after] < billed[before] / 4
    assert len(session.steps) > 150
    assert [10] == [len(thread.steps) for thread in session.subagents]
    assert "TodoWrite" in {call.name for call in session.main.tool_calls()}
    assert "Never edit anything under golden/" in session.messages[1].text


def test_an_abandoned_branch_is_billed(sessions: Mapping[str, Transcript]) -> None:
    """The branch that the person left is a thread of its own, and its usage counts."""
    session = sessions["rainlog-drought"]

    assert [6] == [len(thread.steps) for thread in session.abandoned]
    assert session.usage.total > session.main.usage.total


def test_no_path_of_the_machine_is_left(made: list[Sample]) -> None:
    """The temporary folder and the interpreter's path are nowhere in a session."""
    assert [] == [sample.path for sample in made if b"samples-" in sample.data or b"site-packages" in sample.data]


@pytest.fixture
def ledger() -> Workspace:
    """A working copy of the ledger."""
    return Workspace(DATASETS / "samples" / "repositories" / "ledger")


def test_stored_python_is_renamed(ledger: Workspace) -> None:
    """The working copy has Python sources, and none of the stored names."""
    with ledger:
        assert "ledger/money.py" in ledger.files("**/*")
        assert [] == ledger.files("**/*.py.txt")


def test_commands_are_real(ledger: Workspace) -> None:
    """Output and exit code come from bash; the folder is shown under its neutral name, the environment is bare."""
    with ledger:
        done = ledger.perform(Action(kind="bash", target="pwd; env | cut -d= -f1 | sort; exit 3"))

    assert (3, True) == (done.code, done.failed)
    assert ["/home/dev/ledger", "LC_ALL", "PATH", "PWD", "SHLVL", "_"] == done.text.splitlines()


@pytest.mark.parametrize(("old", "reason"), [
    ("no such line", "the old text does not occur"), ("return", "the old text occurs 5 times")])
def test_edits_fail_for_real(ledger: Workspace, old: str, reason: str) -> None:
    """An edit needs its old text exactly once, and changes nothing otherwise."""
    with ledger:
        before = ledger.text("ledger/money.py")
        done = ledger.perform(Action(kind="edit", target="ledger/money.py", more={"old": old, "new": "x"}))

        assert (f"{reason} in ledger/money.py", True) == (done.text, done.failed)
        assert before == ledger.text("ledger/money.py")


def test_an_agent_quotes_what_it_sees(ledger: Workspace) -> None:
    """`swap` quotes the whole line that it changes; it refuses where several lines would fit."""
    more = {"has": "COVER", "old": "a", "new": "b"}
    with ledger:
        edit = concrete(Action(kind="swap", target="ledger/__init__.py",
                               more={"has": "VERSION", "old": "0.4", "new": "0.5"}), ledger)
        with pytest.raises(ValueError, match="0 lines hold 'COVER'"):
            concrete(Action(kind="swap", target="ledger/__init__.py", more=more), ledger)

    assert {"old": 'VERSION = "0.4.0"', "new": 'VERSION = "0.5.0"'} == edit.more


def test_moves_are_written_out() -> None:
    """`each` repeats moves for its items and `use` plays a routine; placeholders are filled in everywhere."""
    moves = [{"each": ["a", "b"], "moves": [{"use": "look", "with": {"file": "<<item>>.txt"}}]}]
    routines = {"look": [{"say": "Now <<file>>.", "do": [{"read": "<<file>>"}]}]}

    assert [{"say": "Now a.txt.", "do": [{"read": "a.txt"}]}, {"say": "Now b.txt.", "do": [{"read": "b.txt"}]}] == list(
        expand(moves, routines))


def test_a_table_names_one_action() -> None:
    """Two actions in one table are a mistake of the script."""
    with pytest.raises(ValueError, match="one action a table, found read, bash"):
        action_of({"read": "a", "bash": "b"})
