"""OpenCode sessions: exports, session files with their folders, databases, rows; sub-agents and forks."""

from __future__ import annotations

import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from replay.errors import ReadError
from replay.readers.opencode import OpenCode
from replay.readers.registry import detect, read, read_bytes
from replay.readers.source import parse_source
from replay.transcript import Transcript

NOW = 1_796_000_000_000
SESSION = {"id": "ses_1", "slug": "a", "projectID": "p1", "directory": "/p", "title": "t", "version": "1.18.33",
           "time": {"created": NOW, "updated": NOW}}


def tokens(given: int = 10, output: int = 5, reasoning: int = 0, read: int = 0, write: int = 0) -> dict[str, Any]:
    """Token counts as OpenCode writes them."""
    return {"input": given, "output": output, "reasoning": reasoning, "cache": {"read": read, "write": write}}


def text(words: str, **more: Any) -> dict[str, Any]:
    """A text part."""
    return {"type": "text", "text": words, **more}


def tool(call: str, output: str = "ok", status: str = "completed", **state: Any) -> dict[str, Any]:
    """A tool part."""
    told = {"status": status, "input": {"x": 1}, "time": {"start": NOW, "end": NOW + 1}, **state}
    if status == "completed":
        told.setdefault("output", output)
    return {"type": "tool", "tool": "bash", "callID": call, "state": told}


def user(name: str, *parts: dict[str, Any], at: int = 0, **info: Any) -> dict[str, Any]:
    """A user message."""
    return {"info": {"id": name, "sessionID": "ses_1", "role": "user", "time": {"created": NOW + at}, **info},
            "parts": list(parts)}


def reply(name: str, *parts: dict[str, Any], at: int = 0, **info: Any) -> dict[str, Any]:
    """A response."""
    told = {"id": name, "sessionID": "ses_1", "role": "assistant", "modelID": "m", "finish": "stop",
            "time": {"created": NOW + at, "completed": NOW + at + 1}, "tokens": tokens(), **info}
    return {"info": told, "parts": [{"type": "step-start"}, *parts, {"type": "step-finish", "tokens": told["tokens"]}]}


def document(*messages: Any, **info: Any) -> bytes:
    """An export document."""
    return json.dumps({"info": {**SESSION, **info}, "messages": list(messages)}, indent=1).encode()


def session(*messages: Any, **info: Any) -> Transcript:
    """The one session of an export."""
    (found,) = read_bytes(document(*messages, **info))
    return found


def codes(found: Transcript) -> list[str]:
    """Codes of the notes."""
    return [note.code for note in found.notes]


def said(found: Transcript) -> list[tuple[str, str, str]]:
    """Role, origin and text of every log message."""
    return [(m.role, m.origin, m.text) for m in found.messages]


def rows(*exports: bytes) -> list[tuple[str, dict[str, Any]]]:
    """The table rows of sessions."""
    found: list[tuple[str, dict[str, Any]]] = []
    for export in exports:
        told = json.loads(export)
        info = told["info"]
        found.append(("session", {
            "id": info["id"], "project_id": "p1", "parent_id": info.get("parentID"), "directory": "/p",
            "version": "1.18.33", "title": "t", "revert": json.dumps(info["revert"]) if "revert" in info else None,
            "time_created": info["time"]["created"], "time_updated": NOW}))
        for number, message in enumerate(told["messages"]):
            key = message["info"]["id"]
            found.append(("message", {"id": key, "session_id": info["id"], "time_created":
                          message["info"]["time"]["created"] + number, "time_updated": NOW,
                          "data": json.dumps(message["info"])}))
            found.extend(("part", {"id": f"prt_{key}_{n:03}", "message_id": key, "session_id": info["id"],
                                   "time_created": NOW, "time_updated": NOW, "data": json.dumps(part)})
                         for n, part in enumerate(message["parts"]))
    return found


def database(path: Path, *exports: bytes) -> Path:
    """A database with the given sessions."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE session (id text PRIMARY KEY, project_id text, parent_id text, directory text,"
                           " version text, title text, revert text, time_created integer, time_updated integer)")
        connection.execute("CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer,"
                           " time_updated integer, data text)")
        connection.execute("CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text,"
                           " time_created integer, time_updated integer, data text)")
        for table, row in rows(*exports):
            names, marks = ", ".join(row), ", ".join("?" * len(row))
            connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(row.values()))
        connection.commit()
    return path


def storage(root: Path, *exports: bytes) -> Path:
    """A folder of small files with the given sessions; the path of the first session's file."""
    paths = []
    for export in exports:
        told = json.loads(export)
        name = told["info"]["id"]
        file = root / "session" / "p1" / f"{name}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(told["info"], indent=2))
        paths.append(file)
        for message in told["messages"]:
            key = message["info"]["id"]
            for folder in (root / "message" / name, root / "part" / key):
                folder.mkdir(parents=True, exist_ok=True)
            (root / "message" / name / f"{key}.json").write_text(json.dumps(message["info"]))
            for n, part in enumerate(message["parts"]):
                (root / "part" / key / f"prt_{n:03}.json").write_text(json.dumps(part))
    return paths[0]


TALK = (user("msg_1", text("go")), reply("msg_2", text("I look"), tool("c1", "one"), tool("c2", "two"), at=2),
        reply("msg_3", text("done"), at=4))


class TestShapes:
    """The four places where a session can stand."""

    def test_an_export_is_read(self) -> None:
        """Prompt, response with calls, one message a result, and the last response come in order."""
        found = session(*TALK)

        assert [("user", "human", "go"), ("assistant", "model", "I look"), ("tool", "tool", "one"),
                ("tool", "tool", "two"), ("assistant", "model", "done")] == said(found)
        assert [1, 4] == [step.start for step in found.steps]
        assert ("ses_1", "1.18.33", "m", "/p", 3) == (found.session_id, found.harness_version, found.model, found.cwd,
                                                     found.message_count)
        assert [] == list(found.notes)

    def test_exports_one_a_line_are_several_sessions(self) -> None:
        """A file of exports, one a line, gives each of them."""
        lines = b"\n".join(json.dumps(json.loads(document(*TALK, id=f"ses_{n}"))).encode() for n in "123")

        assert ["ses_1", "ses_2", "ses_3"] == [t.session_id for t in read_bytes(lines)]

    def test_a_list_of_exports_is_several_sessions(self) -> None:
        """So does a list of exports in one document."""
        listed = json.dumps([json.loads(document(*TALK, id=f"ses_{n}")) for n in "12"]).encode()

        assert ["ses_1", "ses_2"] == [t.session_id for t in read_bytes(listed)]

    def test_a_session_file_takes_the_folders_beside_it(self, tmp_path: Path) -> None:
        """A session file gives the same log as the export of that session."""
        (found,) = read(storage(tmp_path, document(*TALK)))

        assert said(session(*TALK)) == said(found)

    def test_a_session_file_alone_is_an_empty_session(self, tmp_path: Path) -> None:
        """Without folders beside it the session is empty, and a note says what is missing."""
        file = tmp_path / "ses_1.json"
        file.write_text(json.dumps(SESSION))
        (found,) = read(file)

        assert ((), ["missing-messages"]) == (found.messages, codes(found))

    @pytest.mark.parametrize("name", ["../../etc", "a/b", "*"], ids=["up", "down", "star"])
    def test_an_id_never_becomes_a_path(self, tmp_path: Path, name: str) -> None:
        """An id with path characters is not looked for on disk."""
        (found,) = read(storage(tmp_path, document(user("msg_1", text("go")))).rename(tmp_path / "s.json"))
        file = tmp_path / "t.json"
        file.write_text(json.dumps({**SESSION, "id": f"ses_{name}"}))

        assert ["missing-messages"] == codes(found) == codes(read(file)[0])

    def test_a_broken_part_file_costs_only_itself(self, tmp_path: Path) -> None:
        """A part file that is cut is noted by name; the rest of the session stays."""
        file = storage(tmp_path, document(*TALK))
        (tmp_path / "part" / "msg_3" / "prt_001.json").write_text('{"type": "te')
        (found,) = read(file)

        assert (["bad-json"], 4) == (codes(found), len(found.messages))
        assert "msg_3/prt_001.json" in found.notes[0].text

    def test_a_database_is_read_from_its_path(self, tmp_path: Path) -> None:
        """Rows of the three tables give the same log as the export."""
        (found,) = read(database(tmp_path / "opencode.db", document(*TALK)))

        assert ("opencode", said(session(*TALK))) == (found.format, said(found))

    @pytest.mark.parametrize("pack", [gzip.compress, bytes], ids=["gzip", "plain"])
    def test_a_database_is_read_from_bytes(self, tmp_path: Path, pack: Any) -> None:
        """A packed or piped database is read in memory, also one that was written with a log file."""
        path = database(tmp_path / "o.db", document(*TALK))
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
        (found,) = read_bytes(pack(path.read_bytes()))

        assert said(session(*TALK)) == said(found)

    def test_reading_a_database_leaves_no_trace(self, tmp_path: Path) -> None:
        """Nothing is written beside the database, and the file stays as it was."""
        path = database(tmp_path / "o.db", document(*TALK))
        before = path.read_bytes()
        read(path)

        assert (before, ["o.db"]) == (path.read_bytes(), [p.name for p in tmp_path.iterdir()])

    def test_rows_in_the_log_file_of_a_live_database_are_seen(self, tmp_path: Path) -> None:
        """What a running OpenCode has only written to the log file is read too."""
        path = database(tmp_path / "o.db", document(*TALK))
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("DELETE FROM message WHERE id = 'msg_3'")
            connection.commit()
            (found,) = read(path)

        assert 2 == found.message_count

    def test_several_sessions_in_one_database(self, tmp_path: Path) -> None:
        """Each session without a parent is a transcript of its own."""
        path = database(tmp_path / "o.db", document(*TALK), document(user("msg_9", text("hi")), id="ses_2"))

        assert [("ses_1", 3), ("ses_2", 1)] == [(t.session_id, t.message_count) for t in read(path)]

    def test_another_database_is_refused_with_its_tables(self, tmp_path: Path) -> None:
        """A database without the three tables is an error that says what is in it."""
        path = tmp_path / "x.db"
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE cookies (id text)")
        with pytest.raises(ReadError) as caught:
            read(path)

        assert "it has cookies" in str(caught.value)

    def test_a_damaged_database_is_refused(self, tmp_path: Path) -> None:
        """A file that only begins like a database is an error in words, not a crash."""
        path = tmp_path / "x.db"
        path.write_bytes(b"SQLite format 3\0" + b"\xff" * 200)
        with pytest.raises(ReadError) as caught:
            read(path)

        assert "not readable as an SQLite database" in str(caught.value)

    def test_rows_of_the_newer_layout_are_reported(self, tmp_path: Path) -> None:
        """Rows of a table that is not read are counted in a note."""
        path = database(tmp_path / "o.db", document(*TALK))
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE session_message (id text)")
            connection.execute("INSERT INTO session_message VALUES ('x')")
            connection.commit()

        assert ["unread-table"] == codes(read(path)[0])

    def test_table_rows_as_lines(self) -> None:
        """Rows with the names of their tables, one a line, give the same log, and lines are known."""
        lines = [json.dumps({"table": table, **row}) for table, row in rows(document(*TALK))]
        (found,) = read_bytes("\n".join(lines).encode())

        assert (said(session(*TALK)), 2) == (said(found), found.messages[0].line)

    def test_messages_without_a_session_row_are_kept(self) -> None:
        """Rows of a session that has no row of its own still make a session."""
        lines = [json.dumps({"table": table, **row}) for table, row in rows(document(*TALK)) if table != "session"]
        (found,) = read_bytes("\n".join(lines).encode())

        assert (3, ["missing-session"]) == (found.message_count, codes(found))

    @pytest.mark.parametrize("data", ["{", "[]", None, 7, '"x"'], ids=["cut", "list", "null", "number", "string"])
    def test_a_row_with_bad_data_costs_only_itself(self, data: Any) -> None:
        """A row whose data are no JSON object is noted and kept out."""
        found = rows(document(*TALK))
        found[1] = ("message", {**found[1][1], "data": data})
        (read_back,) = read_bytes("\n".join(json.dumps({"table": t, **row}) for t, row in found).encode())

        assert (2, ["bad-json", "missing-message"]) == (read_back.message_count, codes(read_back))

    def test_a_row_that_is_written_again(self) -> None:
        """Of two rows with one id the later one holds."""
        found = rows(document(*TALK))
        part = next(row for table, row in found if table == "part")
        found += [("part", part), ("part", {**part, "data": json.dumps(text("went"))})]
        (read_back,) = read_bytes("\n".join(json.dumps({"table": t, **row}) for t, row in found).encode())

        assert ("went", ["duplicate", "duplicate"]) == (read_back.messages[0].text, codes(read_back))

    def test_other_tables_among_rows(self) -> None:
        """Rows of tables that hold no talk are passed over."""
        lines = [json.dumps({"table": t, **row}) for t, row in rows(document(*TALK))]
        (found,) = read_bytes("\n".join([*lines, '{"table": "todo", "id": "x"}', '[3]']).encode())

        assert (3, ["not-an-object"]) == (found.message_count, codes(found))


class TestFamilies:
    """Sub-agents, forks and what was reverted."""

    CHILD = document(user("msg_a", text("find it"), at=3), reply("msg_b", text("found"), at=4), id="ses_2",
                     parentID="ses_1", time={"created": NOW + 3})
    GRANDCHILD = document(user("msg_c", text("deeper"), at=3), reply("msg_d", text("ok"), at=4), id="ses_3",
                          parentID="ses_2", time={"created": NOW + 3})

    def parent(self) -> bytes:
        """A session whose call started the child."""
        task = tool("call_task", "found", metadata={"sessionId": "ses_2"})
        return document(user("msg_1", text("go")), reply("msg_2", task, at=1), reply("msg_3", text("done"), at=8))

    def test_sub_agents_are_threads_of_their_parent(self, tmp_path: Path) -> None:
        """Sessions below a session are its sub-agents, with the call that started them; deeper ones too."""
        (found,) = read(database(tmp_path / "o.db", self.parent(), self.CHILD, self.GRANDCHILD))

        assert [("ses_2", "call_task"), ("ses_3", "call_task")] == [(t.id, t.parent_call) for t in found.subagents]
        assert ["nudge"] == [m.origin for m in found.subagents[0].messages if m.role == "user"]
        assert (3, 40) == (found.message_count, found.usage.input_total)

    def test_sub_agents_of_a_session_file(self, tmp_path: Path) -> None:
        """The session that a call started is found by its id in the storage folder."""
        (found,) = read(storage(tmp_path, self.parent(), self.CHILD))

        assert [("ses_2", "call_task", 2)] == [(t.id, t.parent_call, len(t.messages)) for t in found.subagents]

    def test_a_sub_agent_alone_names_its_parent(self) -> None:
        """A child's own export is a session with a parent."""
        (found,) = read_bytes(self.CHILD)

        assert ("ses_2", "ses_1", "nudge") == (found.session_id, found.parent_session, found.messages[0].origin)

    def test_sessions_in_a_ring_are_read(self, tmp_path: Path) -> None:
        """A session that is its own parent is read once."""
        (found,) = read_bytes(document(*TALK, parentID="ses_1"))

        assert (3, ()) == (found.message_count, found.subagents)

    def test_a_fork_is_not_billed_for_what_it_copied(self, tmp_path: Path) -> None:
        """Messages that are older than their session were copied; only new responses count."""
        copies = [{**m, "info": {**m["info"], "id": f"{m['info']['id']}_copy"}} for m in TALK]
        fork = document(*copies, user("msg_8", text("more"), at=50), reply("msg_9", text("new"), at=51), id="ses_2",
                        parentID="ses_1", time={"created": NOW + 40})
        one, two = read(database(tmp_path / "o.db", document(*TALK), fork))

        assert (20, 10) == (one.usage.input_total, two.usage.input_total)
        assert (5, "ses_1", ["forked-history"]) == (two.message_count, two.parent_session, codes(two))

    def test_reverted_messages_are_abandoned(self) -> None:
        """What the person took back is out of the log, but was billed."""
        found = session(*TALK, user("msg_4", text("bad")), reply("msg_5", text("oops")),
                        revert={"messageID": "msg_4"})

        assert (3, 5) == (found.message_count, len(found.messages))
        assert ([["bad", "oops"]], 30) == ([[m.text for m in t.messages] for t in found.abandoned],
                                           found.usage.input_total)

    def test_a_response_can_be_reverted_in_part(self) -> None:
        """Parts before the one that was taken back stay in the log."""
        parts = [{**text("kept"), "id": "prt_1"}, {**text("gone"), "id": "prt_2"}]
        found = session(user("msg_1", text("go")), {"info": reply("msg_2")["info"], "parts": parts},
                        revert={"messageID": "msg_2", "partID": "prt_2"})

        assert (["go", "kept"], ["gone"]) == ([m.text for m in found.messages],
                                              [m.text for t in found.abandoned for m in t.messages])
        assert 10 == found.usage.input_total


class TestDetection:
    """Telling OpenCode from other formats."""

    @pytest.mark.parametrize(("data", "name"), [
        (document(*TALK), "opencode"), (json.dumps(SESSION).encode(), "opencode"),
        (b'{"info": {"id": "x"}, "messages": []}', None), (b'{"id": "ses_1", "messages": []}', None)])
    def test_by_content(self, data: bytes, name: str | None) -> None:
        """An export or a session file is told by its ids; other documents are not taken."""
        found = detect(parse_source(data, "x"))

        assert (name == "opencode") == (found == "opencode")

    def test_reading_nothing_gives_nothing(self) -> None:
        """A source without sessions gives none."""
        assert () == OpenCode().read(parse_source(b"", "x"))
