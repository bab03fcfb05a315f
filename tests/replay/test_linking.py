"""Sessions that share records: billed once, linked to what they went on from, left out where they say nothing new."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from replay.copies import without_copies
from replay.find import Found, find
from replay.importing import import_files
from replay.linking import Link, Scan
from replay.readers import read
from replay.transcript import Message, Step, Thread, Transcript, Usage


def transcript(session: str, *answers: str, usage: int = 10, parent: str | None = None, path: str = "x",
               time: float | None = None, side: int = 0) -> Transcript:
    """A session with one response for each id."""
    bill = Usage(input_uncached=usage, output=1, side=Usage(input_uncached=side) if side else None)
    log = tuple(Message(index=i, role="assistant", origin="model", blocks=(), id=a or None) for i, a in enumerate(answers))
    steps = tuple(Step(number=i + 1, start=i, response=i, usage=bill, time=time and time + i) for i in range(len(answers)))
    return Transcript(format="f", session_id=session, path=path, parent_session=parent,
                      main=Thread(id="main", messages=log, steps=steps))


def ids(*numbers: int) -> list[str]:
    """Ids that are long enough to be nobody else's."""
    return [f"message-{n:06}" for n in numbers]


def links(*sessions: Transcript) -> list[Link]:
    """The links of a scan."""
    scan = Scan()
    for session in sessions:
        scan.add(session)
    return scan.links()


def test_sessions_without_common_records_have_plain_links() -> None:
    """Nothing is copied, nothing is linked."""
    assert [Link(), Link()] == links(transcript("a", *ids(1, 2)), transcript("b", *ids(3)))
    assert [] == links()


def test_the_longer_session_keeps_what_both_hold() -> None:
    """In whichever order they come; the shorter one is its parent."""
    old, new = transcript("old", *ids(1, 2)), transcript("new", *ids(1, 2, 3))
    first, second = links(old, new)

    assert (2, 22, 1, True, None) == (first.copied_requests, first.copied.total, first.counted_in, first.is_contained, first.parent)
    assert (0, None, "old") == (second.copied_requests, second.counted_in, second.parent)
    assert [second, Link(copied=first.copied, copied_requests=2, counted_in=0, is_contained=True)] == links(new, old)


def test_branches_share_their_beginning() -> None:
    """Each keeps its own end; what they share is billed in the longer one."""
    one, two = links(transcript("a", *ids(1, 2, 3)), transcript("b", *ids(1, 2, 7, 8)))

    assert (2, 1, False) == (one.copied_requests, one.counted_in, one.is_contained)
    assert (None, "a") == (two.counted_in, two.parent)


def test_a_chain_of_resumes_is_linked_step_by_step() -> None:
    """The last of three holds all; each one's parent is the longest that it went on from."""
    chain = links(transcript("c", *ids(1, 2, 3, 4)), transcript("a", *ids(1)), transcript("b", *ids(1, 2)))

    assert ["b", None, "a"] == [link.parent for link in chain]
    assert [0, 1, 2] == [link.copied_requests for link in chain]
    assert [None, 0, 0] == [link.counted_in for link in chain]


def test_copies_of_one_session_have_no_parent() -> None:
    """Two files of one session are one session twice, the first counts."""
    first, second = links(transcript("s", *ids(1, 2), path="a"), transcript("s", *ids(1, 2), path="b"))

    assert (Link(), 0, True) == (first, second.counted_in, second.is_contained)


def test_a_known_parent_stays() -> None:
    """What a file says itself is not guessed again, and no session is its own ancestor."""
    child = links(transcript("new", *ids(1, 2), parent="real"), transcript("old", *ids(1)))
    circle = links(transcript("new", *ids(1, 2)), transcript("old", *ids(1), parent="new"))

    assert [None, None] == [child[0].parent, circle[0].parent]


@pytest.mark.parametrize(("first", "second", "is_same"), [
    ({"answers": ("m1",), "time": 5.0}, {"answers": ("m1",), "time": 5.0}, True),
    ({"answers": ("m1",), "time": 5.0}, {"answers": ("m1",), "time": 6.0}, False),
    ({"answers": ("m1",)}, {"answers": ("m1",)}, False),
    ({"answers": ("",), "time": 5.0}, {"answers": ("",), "time": 5.0}, True),
    ({"answers": ("",), "time": 5.0}, {"answers": ("",), "time": 5.0, "usage": 11}, False),
    ({"answers": ("",)}, {"answers": ("",)}, False)])
def test_short_or_missing_ids_need_a_time(first: dict[str, Any], second: dict[str, Any], is_same: bool) -> None:
    """What two unrelated sessions may have in common by chance is not taken for a copy."""
    pair = [transcript("s", *spec.pop("answers"), path=str(n), **spec) for n, spec in enumerate((dict(first), dict(second)))]

    assert is_same == (links(*pair)[1].counted_in == 0)


def test_passes_billed_beside_a_response_are_copied_too() -> None:
    """The bill of a copy holds what the service did on the side."""
    _, copy = links(transcript("a", *ids(1, 2), side=100), transcript("a", *ids(1), side=100, path="y"))

    assert 110 == copy.copied.input_uncached


def claude(session: str, number: int, parent: str | None, **more: Any) -> list[dict[str, Any]]:
    """A prompt and a response of Claude Code with 100 tokens in, 10 out."""
    uuid = f"{number:08}-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
    base = {"sessionId": session, "version": "2.0.0", "cwd": "/srv/x", "userType": "external", **more}
    prompt = {"type": "user", "uuid": uuid, "parentUuid": parent, "timestamp": f"2026-01-01T00:{number:02}:00Z",
              "message": {"role": "user", "content": f"prompt {number}"}}
    answer = {"type": "assistant", "uuid": uuid[:-1] + "b", "parentUuid": uuid, "timestamp": f"2026-01-01T00:{number:02}:30Z",
              "requestId": f"req_{number:012}", "message": {
                  "id": f"msg_{number:012}", "role": "assistant", "model": "m-1", "content": [{"type": "text", "text": f"answer {number}"}],
                  "usage": {"input_tokens": 100, "output_tokens": 10}}}
    return [base | prompt, base | answer]


def talk(session: str, numbers: range, **more: Any) -> list[dict[str, Any]]:
    """Several turns in a row."""
    rows: list[dict[str, Any]] = []
    for number in numbers:
        rows += claude(session, number, rows[-1]["uuid"] if rows else None, **more)
    return rows


def store(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write rows as JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


OLD, NEW = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"


@pytest.fixture
def projects(tmp_path: Path) -> Path:
    """A folder like `~/.claude/projects`: a resumed session, sub-agents beside and below their sessions, side files."""
    folder = tmp_path / "projects" / "-srv-x"
    store(folder / f"{OLD}.jsonl", talk(OLD, range(1, 4)))
    store(folder / f"{NEW}.jsonl", talk(NEW, range(1, 4)) + claude(NEW, 7, f"{3:08}-aaaa-4aaa-8aaa-aaaaaaaaaaab"))
    store(folder / "agent-beside01.jsonl", talk(OLD, range(20, 22), isSidechain=True, agentId="beside01"))
    store(folder / NEW / "subagents" / "agent-below001.jsonl", talk(NEW, range(30, 33), isSidechain=True, agentId="below001"))
    store(folder / NEW / "subagents" / "workflows" / "wf" / "journal.jsonl", [{"step": "start"}])
    (folder / NEW / "subagents" / "agent-below001.meta.json").write_text('{"agentType": "explore"}')
    (folder / "sessions-index.json").write_text('{"version": 1, "entries": []}')
    (folder / "empty.jsonl").write_text("")
    return tmp_path / "projects"


def test_a_tree_of_projects_is_counted_once(projects: Path) -> None:
    """Two sessions, each with its sub-agent; the resumed one counts what it copied; sums equal the bill."""
    imported = import_files(find([str(projects)]))
    by_id = {s["session_id"]: s for s in imported.sessions}

    assert {OLD, NEW} == set(by_id)
    assert [1, 1] == [by_id[name]["subagents"] for name in (OLD, NEW)]
    assert 4 + 2 + 3 == sum(s["usage"]["requests"] for s in imported.sessions)
    assert (900, 90) == tuple(sum(s["usage"][part] for s in imported.sessions) for part in ("input_uncached", "output"))
    assert OLD == by_id[NEW]["parent_session"]
    assert (3, NEW) == tuple(by_id[OLD]["counted_elsewhere"][k] for k in ("requests", "session_id"))
    assert {"sessions-index.json", "empty.jsonl"} == {Path(e["path"]).name for e in imported.skipped}
    assert [] == imported.unreadable
    assert not imported.tally.is_faulty


def test_a_named_sub_agent_is_not_billed_twice(projects: Path) -> None:
    """A file that the user names is read on its own, and counted where most of its records are."""
    agent = projects / "-srv-x" / NEW / "subagents" / "agent-below001.jsonl"
    imported = import_files(find([str(agent), str(projects / "-srv-x" / f"{NEW}.jsonl")]))

    assert 4 + 3 == sum(s["usage"]["requests"] for s in imported.sessions)
    assert [True] == [s["counted_elsewhere"]["is_contained"] for s in imported.sessions if s["counted_elsewhere"]]


def test_files_that_repeat_others_are_left_out_of_a_comparison(projects: Path) -> None:
    """A session that another one goes on from adds nothing; its own sub-agent keeps a file in."""
    files, words = without_copies(find([str(projects)]))
    (projects / "-srv-x" / "agent-beside01.jsonl").unlink()
    fewer, told = without_copies(find([str(projects)]))

    assert ["some of its model calls are also in"] == [w.partition(": ")[2].rpartition(" ")[0] for w in words]
    assert {f"{OLD}.jsonl", f"{NEW}.jsonl"} <= {f.path.name for f in files}
    assert f"{OLD}.jsonl" not in {f.path.name for f in fewer}
    assert "left out: all of its model calls" in told[0]


def test_a_file_that_the_user_names_is_never_left_out(tmp_path: Path) -> None:
    """Copies that are named are only spoken of."""
    one, two = (store(tmp_path / f"{n}.jsonl", talk(OLD, range(1, 3))) for n in "ab")
    named, words = without_copies([Found(one, True), Found(two, True)])
    found, _ = without_copies([Found(one, False), Found(two, False)])

    assert (2, 1, 1) == (len(named), len(words), len(found))


def test_codex_forks_and_parents_sum_up(bugcases: Path, tmp_path: Path) -> None:
    """The child's copied token counts are its parent's: three requests and 3,753 tokens together."""
    for part in ("parent", "child"):
        shutil.copy(bugcases / f"04-codex-fork-{part}.jsonl", tmp_path / f"rollout-{part}.jsonl")
    sessions = import_files(find([str(tmp_path)])).sessions
    usage = [s["usage"] for s in sessions]

    assert ["thread-child", "thread-parent"] == sorted(s["session_id"] for s in sessions)
    assert ["thread-parent", None] == [s["parent_session"] for s in sessions]
    assert 3 == sum(u["requests"] for u in usage)
    assert 3753 == sum(u["input_uncached"] + u["cache_read"] + u["output"] for u in usage)


def test_an_archived_copy_of_a_rollout_counts_once(bugcases: Path, tmp_path: Path) -> None:
    """The same rollout in `sessions` and `archived_sessions`, packed there."""
    import gzip

    data = (bugcases / "04-codex-fork-parent.jsonl").read_bytes()
    (tmp_path / "sessions").mkdir()
    (tmp_path / "archived_sessions").mkdir()
    (tmp_path / "sessions" / "rollout-a.jsonl").write_bytes(data)
    (tmp_path / "archived_sessions" / "rollout-a.jsonl.gz").write_bytes(gzip.compress(data))
    imported = import_files(find([str(tmp_path)]))

    assert 2 == sum(s["usage"]["requests"] for s in imported.sessions)
    assert [None, None] == [s["parent_session"] for s in imported.sessions]


def test_the_corpus_and_the_transcripts_share_nothing(shared: Path) -> None:
    """Real sessions of many people are not taken for copies of each other; one is a later snapshot of another."""
    files = [f for part in ("transcripts", "corpus") for f in find([str(shared / part)])]
    _, words = without_copies(files)

    assert [True] == ["session-legacy-mid.json: left out" in w for w in words]


def test_reading_alone_keeps_the_whole_bill(projects: Path) -> None:
    """Only a scan takes out what other files hold."""
    (session,) = read(projects / "-srv-x" / f"{OLD}.jsonl")

    assert 500 == session.usage.input_uncached


def test_a_resume_that_kept_the_old_name_in_its_copies(projects: Path) -> None:
    """Both files then read the old session's sub-agents; they are billed once, and the old file says nothing new."""
    folder = projects / "-srv-x"
    store(folder / f"{NEW}.jsonl", talk(OLD, range(1, 4)) + claude(NEW, 7, f"{3:08}-aaaa-4aaa-8aaa-aaaaaaaaaaab"))
    imported = import_files(find([str(projects)]))
    files, words = without_copies(find([str(projects)]))

    assert 4 + 2 + 3 == sum(s["usage"]["requests"] for s in imported.sessions)
    assert {None, OLD} == {s["parent_session"] for s in imported.sessions}
    assert f"{OLD}.jsonl" not in {f.path.name for f in files}
    assert 1 == len(words)
