"""Branches and compactions of Claude Code sessions: rewinds, combs, resumes, clears, summaries, blanked results."""

from __future__ import annotations

import json
from typing import Any

import pytest

from replay.readers.claude_code import ClaudeCode
from replay.readers.source import parse_source
from replay.transcript import Message, Transcript

Row = dict[str, Any]
_CLOCK = "2026-01-01T00:{:02d}:00.000Z"


def row(kind: str, uuid: str, parent: str | None, minute: int = 0, **more: Any) -> Row:
    """A record of the chain."""
    return {"parentUuid": parent, "isSidechain": False, "sessionId": "s", "version": "2.1.9", "uuid": uuid,
            "timestamp": _CLOCK.format(minute), "type": kind, **more}


def user(uuid: str, parent: str | None, content: Any, minute: int = 0, **more: Any) -> Row:
    """A user line."""
    return row("user", uuid, parent, minute, message={"role": "user", "content": content}, **more)


def said(uuid: str, parent: str | None, words: str = "ok", output: int = 5, minute: int = 0, **more: Any) -> Row:
    """A response of one text."""
    return row("assistant", uuid, parent, minute, message={
        "id": f"m-{uuid}", "model": "x", "content": [{"type": "text", "text": words}],
        "usage": {"input_tokens": 1, "output_tokens": output}}, **more)


def called(uuid: str, parent: str | None, name: str, response: str) -> Row:
    """A line of a response with one call."""
    return row("assistant", uuid, parent, message={
        "id": response, "model": "x", "content": [{"type": "tool_use", "id": name, "name": "T", "input": {}}],
        "usage": {"input_tokens": 1, "output_tokens": 1}})


def result(uuid: str, parent: str | None, name: str, words: str = "out") -> Row:
    """A result of a call."""
    return user(uuid, parent, [{"type": "tool_result", "tool_use_id": name, "content": words}])


def boundary(uuid: str, after: str | None, minute: int = 30, **meta: Any) -> Row:
    """The mark of a full compaction."""
    return row("system", uuid, None, minute, subtype="compact_boundary", logicalParentUuid=after,
               compactMetadata={"trigger": "auto", "preTokens": 900, **meta})


def summary(uuid: str, parent: str | None, words: str = "recap", minute: int = 31) -> Row:
    """The summary behind a mark."""
    return user(uuid, parent, words, minute, isCompactSummary=True, isVisibleInTranscriptOnly=True)


def read(*rows: Row) -> Transcript:
    """The session of these records."""
    data = b"\n".join(json.dumps(r).encode() for r in rows)
    (transcript,) = ClaudeCode().read(parse_source(data, "case.jsonl"))
    return transcript


def texts(transcript: Transcript) -> list[str]:
    """Text of each message of the main log."""
    return [m.text for m in transcript.messages]


def codes(transcript: Transcript) -> list[str]:
    """Codes of the notes."""
    return [n.code for n in transcript.notes]


class TestRewinds:
    """Two prompts of the person under one parent."""

    def test_the_branch_without_the_last_message_is_abandoned(self) -> None:
        """Of two prompts under one parent the later branch is active; the other keeps its usage."""
        t = read(user("u", None, "go"), said("a", "u"), user("p1", "a", "old"), said("b1", "p1", output=70),
                 user("p2", "a", "new"), said("b2", "p2"))
        assert ["go", "ok", "new", "ok"] == texts(t)
        assert [["old", "ok"]] == [[m.text for m in b.messages] for b in t.abandoned]
        assert (80, 10) == (t.usage.output, t.main.usage.output)
        assert (4, [0, 1]) == (t.message_count, [m.index for m in t.abandoned[0].messages])

    def test_bookkeeping_between_prompt_and_parent_does_not_hide_a_rewind(self) -> None:
        """The parent is the nearest message above: system and progress lines between do not count."""
        t = read(user("u", None, "go"), said("a", "u"), row("system", "x", "a", subtype="turn_duration"),
                 user("p1", "x", "old"), said("b1", "p1"), user("p2", "a", "new"), said("b2", "p2"))
        assert ["go", "ok", "new", "ok"] == texts(t)

    def test_branch_that_the_talk_returned_to_is_active(self) -> None:
        """The active branch is that of the last message, also where its prompt is the earlier one."""
        t = read(user("u", None, "go"), said("a", "u"), user("p1", "a", "one"), said("b1", "p1"),
                 user("p2", "a", "two"), said("b2", "p2"), user("q", "b1", "back"))
        assert ["go", "ok", "one", "ok", "back"] == texts(t)

    def test_leaf_that_the_file_names_behind_the_last_message(self) -> None:
        """A `last-prompt` record behind the last message names the end of the active branch."""
        leaf = {"type": "last-prompt", "lastPrompt": "x", "leafUuid": "b1", "sessionId": "s"}
        rows = [user("u", None, "go"), said("a", "u"), user("p1", "a", "one"), said("b1", "p1"),
                user("p2", "a", "two"), said("b2", "p2")]
        assert ["go", "ok", "one", "ok"] == texts(read(*rows, leaf))
        assert ["go", "ok", "two", "ok"] == texts(read(*rows[:4], leaf, *rows[4:]))

    def test_rewind_inside_a_rewound_branch(self) -> None:
        """A branch that was rewound before its parent was is a branch of its own."""
        t = read(user("u", None, "go"), said("a", "u"), user("p1", "a", "one"), said("b1", "p1"),
                 user("q1", "b1", "one-a"), user("q2", "b1", "one-b"), user("p2", "a", "two"))
        assert [["one", "ok", "one-b"], ["one-a"]] == [[m.text for m in b.messages] for b in t.abandoned]

    def test_rewind_to_the_start(self) -> None:
        """A second prompt without any parent, in a file with links, takes the first one back."""
        t = read(user("u", None, "first"), said("a", "u"), user("v", None, "instead"), said("b", "v"))
        assert (["instead", "ok"], 1) == (texts(t), len(t.abandoned))

    def test_comb_of_parallel_calls_is_no_rewind(self) -> None:
        """Calls that hang on each other, with each result on its call, are one branch."""
        t = read(user("u", None, "go"), called("a", "u", "c1", "m"), called("b", "a", "c2", "m"),
                 called("c", "b", "c3", "m"), result("r1", "a", "c1"), result("r2", "b", "c2"), result("r3", "c", "c3"),
                 said("z", "r3"))
        assert ((), 6, 2) == (t.abandoned, len(t.messages), len(t.steps))

    @pytest.mark.parametrize("second", [
        user("p2", "a", [{"type": "tool_result", "tool_use_id": "c", "content": "x"}]),
        user("p2", "a", "<command-name>/exit</command-name>"), user("p2", "a", "note", isMeta=True),
    ])
    def test_other_user_lines_are_no_rewind(self, second: Row) -> None:
        """A tool result, a local command or an injected text beside a prompt takes nothing back."""
        t = read(user("u", None, "go"), said("a", "u"), user("p1", "a", "next"), said("b", "p1"), second)
        assert () == t.abandoned


class TestBrokenLinks:
    """Chains with gaps."""

    def test_missing_parent_goes_on_where_the_file_stood(self) -> None:
        """Records whose parent is not in the file follow the record before them; one note counts them."""
        t = read(user("u", None, "go"), said("a", "gone"), user("v", "lost", "more"))
        assert ["go", "ok", "more"] == texts(t)
        assert [("missing-parent", 2)] == [(n.code, n.line) for n in t.notes]
        assert "x 2" in t.notes[0].text

    def test_file_that_begins_in_the_middle(self) -> None:
        """A first record that hangs on nothing in the file says that the beginning is missing."""
        assert "begins in the middle" in read(user("u", "before", "go"), said("a", "u")).notes[0].text

    def test_roots_everywhere_are_one_line(self) -> None:
        """A file in which no record has a parent is read as it stands."""
        t = read(user("u", None, "one"), said("a", None), user("v", None, "two"), said("b", None))
        assert (["one", "ok", "two", "ok"], ()) == (texts(t), t.abandoned)

    @pytest.mark.parametrize(("first", "second"), [("u", "u"), ("v", "u")])
    def test_circles_end(self, first: str, second: str) -> None:
        """Records that hang on themselves or on each other do not stop the reader."""
        assert 2 == read(user("u", first, "one"), user("v", second, "two")).message_count

    def test_record_before_its_parent_is_moved_behind_it(self) -> None:
        """A reminder that was written before the result it hangs on follows that result's turn."""
        late = row("attachment", "x", "r", attachment={"type": "date_change", "newDate": "1 May"})
        t = read(user("u", None, "go"), called("a", "u", "c1", "m"), late, result("r", "a", "c1"), said("z", "x"))
        assert ["human", "model", "tool", "injected", "model"] == [m.origin for m in t.messages]


class TestRepeats:
    """Records that stand in a file more than once."""

    def test_one_note_counts_the_repeats(self) -> None:
        """Copied records are read once, with one note that counts them."""
        rows = [user("u", None, "go", sessionId="old"), said("a", "u", sessionId="old")]
        t = read(*rows, *({**r, "sessionId": "new"} for r in rows), user("v", "a", "on", sessionId="new"))
        assert (["go", "ok", "on"], ["duplicate"], 5) == (texts(t), codes(t), t.usage.output)
        assert ("new", "old", 3) == (t.session_id, t.parent_session, t.message_count)
        assert "x 2" in t.notes[0].text

    def test_copies_with_new_uuids_in_another_session(self) -> None:
        """Copies that kept their time but got new uuids are repeats too, and later records may hang on them."""
        rows = [user("u", None, "go", sessionId="old"), said("a", "u", sessionId="old")]
        copies = [user("u2", None, "go", sessionId="new"), {**said("a", "u2", sessionId="new"), "uuid": "a2"}]
        t = read(*rows, *copies, user("v", "a2", "on", sessionId="new"))
        assert (["go", "ok", "on"], ["duplicate"], ()) == (texts(t), codes(t), t.compactions)

    def test_same_uuid_with_another_content_is_another_record(self) -> None:
        """Two records that share a uuid but not their content are both kept."""
        assert ["one", "two"] == texts(read(user("u", None, "one"), user("u", None, "two")))

    def test_repeat_with_a_larger_usage(self) -> None:
        """A record written again with more output tokens gives the usage."""
        assert 50 == read(user("u", None, "go"), said("a", "u", output=2), said("a", "u", output=50)).usage.output

    def test_equal_prompts_are_not_repeats(self) -> None:
        """The same words typed twice are two prompts."""
        assert ["go", "ok", "go"] == texts(read(user("u", None, "go"), said("a", "u"), user("v", "a", "go")))


class TestClears:
    """Contexts that were emptied in the middle of a file."""

    def test_session_start_by_clear(self) -> None:
        """A root that a clear's hook wrote empties the window and keeps the log."""
        hook = row("progress", "h", None, data={"type": "hook_progress", "hookName": "SessionStart:clear"})
        t = read(user("u", None, "go"), said("a", "u"), hook, user("v", "h", "plan"), said("b", "v"))
        assert [("clear", 2, ())] == [(c.kind, c.position, c.window) for c in t.compactions]
        assert (4, ()) == (len(t.messages), t.abandoned)

    def test_root_of_another_session(self) -> None:
        """A prompt without a parent under another session id begins with an empty window."""
        t = read(user("u", None, "go"), said("a", "u"), user("v", None, "new", sessionId="t"))
        assert [("clear", 2)] == [(c.kind, c.position) for c in t.compactions]

    def test_first_session_start_is_no_clear(self) -> None:
        """A file that begins with a clear's hook has nothing to clear."""
        hook = row("progress", "h", None, data={"type": "hook_progress", "hookName": "SessionStart:clear"})
        assert () == read(hook, user("u", "h", "go"), said("a", "u")).compactions


class TestCompactions:
    """Summaries in place of the history."""

    def test_summary_is_in_the_window_and_not_in_the_log(self) -> None:
        """The window after a compaction is the summary, in effect for the steps behind it."""
        t = read(user("u", None, "go"), said("a", "u"), boundary("b", "a"), summary("c", "b"),
                 user("v", "c", "on"), said("d", "v"))
        (found,) = t.compactions
        assert ["go", "ok", "on", "ok"] == texts(t)
        assert (2, "full", "auto", 900, "recap", True) == (
            found.position, found.kind, found.trigger, found.counter_before, found.summary, found.summary_readable)
        (inserted,) = found.window
        assert isinstance(inserted, Message)
        assert (-1, "user", "summary") == (inserted.index, inserted.role, inserted.origin)
        assert 5 == t.message_count

    def test_what_was_put_back_belongs_to_the_window(self) -> None:
        """Attachments right behind the summary are part of the window; later ones are messages."""
        t = read(user("u", None, "go"), said("a", "u"), boundary("b", "a"), summary("c", "b"),
                 row("attachment", "x", "c", attachment={"type": "file", "filename": "a.py"}),
                 user("v", "x", "on"),
                 row("attachment", "y", "v", attachment={"type": "date_change", "newDate": "May"}))
        assert ["recap", "a.py"] == [m.text for m in t.compactions[0].window if isinstance(m, Message)]
        assert ["go", "ok", "on", "May"] == texts(t)

    def test_listed_messages_are_kept_in_their_order(self) -> None:
        """Messages that the metadata list follow the summary, in the listed order."""
        t = read(user("u", None, "go"), said("a", "u"), user("v", "a", "two"), said("w", "v"),
                 boundary("b", "w", preservedMessages={"anchorUuid": "c", "uuids": ["w", "v"]}), summary("c", "b"))
        assert [3, 2] == list(t.compactions[0].window[1:])

    def test_segment_from_head_to_tail_is_kept(self) -> None:
        """A segment keeps everything from its head to its tail, results included."""
        t = read(user("u", None, "go"), called("a", "u", "c1", "m"), result("r", "a", "c1"), said("w", "r"),
                 boundary("b", "w", preservedSegment={"headUuid": "a", "anchorUuid": "c", "tailUuid": "w"}),
                 summary("c", "b"), user("v", "w", "on"))
        assert [1, 2, 3] == list(t.compactions[0].window[1:])
        assert ["go", "", "out", "ok", "on"] == texts(t)

    def test_kept_messages_that_were_written_again(self) -> None:
        """Kept messages that stand again behind the mark are no new messages, with or without a new uuid."""
        t = read(user("u", None, "go", 1), said("a", "u", minute=2), boundary("b", "a"), summary("c", "b"),
                 user("u", "c", "go", 1), {**said("a", "u", minute=2), "uuid": "a2"}, user("v", "a2", "on", 40))
        assert (["go", "ok", "on"], [0, 1], []) == (texts(t), list(t.compactions[0].window[1:]), codes(t))

    def test_kept_messages_that_are_not_in_the_file(self) -> None:
        """A mark that names messages which the file does not hold is noted."""
        t = read(user("u", None, "go"), boundary("b", "u", preservedMessages={"uuids": ["gone"]}), summary("c", "b"))
        assert (["missing-kept"], 1) == (codes(t), len(t.compactions[0].window))

    def test_summary_without_a_mark(self) -> None:
        """A summary line with no boundary before it is a compaction too, and never a prompt."""
        t = read(user("u", None, "go"), said("a", "u"), summary("c", None), user("v", "c", "on"))
        assert [("full", 2, None)] == [(c.kind, c.position, c.trigger) for c in t.compactions]
        assert ["human", "model", "human"] == [m.origin for m in t.messages]

    def test_mark_without_a_summary(self) -> None:
        """A file that ends behind the mark has a compaction without a readable summary."""
        (found,) = read(user("u", None, "go"), boundary("b", "u")).compactions
        assert (None, False, ()) == (found.summary, found.summary_readable, found.window)

    def test_rewind_to_before_a_compaction(self) -> None:
        """A compaction in a branch that was taken back is not in the main thread."""
        t = read(user("u", None, "go"), said("a", "u"), user("p", "a", "old"), said("q", "p"), boundary("b", "q"),
                 summary("c", "b"), said("d", "c"), user("p2", "a", "new"), said("e", "p2"))
        assert (["go", "ok", "new", "ok"], ()) == (texts(t), t.compactions)
        assert 1 == len(t.abandoned[0].compactions)

    def test_two_compactions(self) -> None:
        """Each compaction has its own place and summary."""
        t = read(user("u", None, "go"), boundary("b", "u"), summary("c", "b", "one"), said("d", "c"),
                 boundary("e", "d"), summary("f", "e", "two"), said("g", "f"))
        assert [(1, "one"), (2, "two")] == [(c.position, c.summary) for c in t.compactions]


class TestMicroCompactions:
    """Results that were blanked."""

    def micro(self, *calls: object, **meta: Any) -> Row:
        """The mark of a micro-compaction."""
        return row("system", "x", "r2", subtype="microcompact_boundary", microcompactMetadata={
            "trigger": "auto", "compactedToolIds": list(calls), **meta})

    def rows(self) -> list[Row]:
        """Two calls with their results."""
        return [user("u", None, "go"), called("a", "u", "c1", "m"), called("b", "a", "c2", "m"),
                result("r1", "a", "c1"), result("r2", "b", "c2")]

    def test_named_results_are_blanked(self) -> None:
        """The results of the named calls are blanked from here on; the log keeps their text."""
        t = read(*self.rows(), self.micro("c1", "elsewhere", 7, preTokens=100, tokensSaved=40), said("z", "x"))
        (found,) = t.compactions
        assert ("micro", 4, (2,), 100, 60) == (
            found.kind, found.position, found.elided, found.counter_before, found.counter_after)
        assert "out" == t.messages[2].text

    def test_more_saved_than_there_was(self) -> None:
        """A mark that claims to have saved more than there was does not tell what was left."""
        (found,) = read(*self.rows(), self.micro("c1", preTokens=100, tokensSaved=140)).compactions
        assert (100, None) == (found.counter_before, found.counter_after)

    def test_directly_before_a_full_compaction(self) -> None:
        """A micro-compaction may stand right before a full one."""
        t = read(*self.rows(), self.micro("c1"), boundary("b2", "x"), summary("s", "b2"), said("z", "s"))
        assert ["micro", "full"] == [c.kind for c in t.compactions]

    def test_metadata_of_a_wrong_type(self) -> None:
        """Metadata that are no object blank nothing."""
        mark = self.micro() | {"microcompactMetadata": [1]}
        assert [()] == [c.elided for c in read(*self.rows(), mark).compactions]
