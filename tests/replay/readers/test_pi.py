"""Pi sessions: messages, trees and branches, compactions, versions, odd files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from replay.blocks import Image, Reasoning, Text, ToolCall
from replay.readers.pi import Pi
from replay.readers.registry import read_bytes
from replay.readers.source import parse_source
from replay.transcript import Message, Transcript, Usage

HEADER = {"type": "session", "version": 3, "id": "s-1", "timestamp": "2026-01-01T00:00:00Z", "cwd": "/repo"}
FRAME = "The conversation history before this point was compacted into the following summary:\n\n<summary>\n"


def entry(name: str, parent: str | None, kind: str = "message", /, **more: Any) -> dict[str, Any]:
    """One entry of a tree."""
    return {"type": kind, "id": name, "parentId": parent, "timestamp": "2026-01-01T00:00:01Z", **more}


def user(name: str, parent: str | None, text: str = "", **more: Any) -> dict[str, Any]:
    """A prompt; its text is its id unless given."""
    return entry(name, parent, message={"role": "user", "content": text or name, "timestamp": 1, **more})


def answer(name: str, parent: str | None, *calls: str, stop: str = "stop", sent: int = 10,
           **more: Any) -> dict[str, Any]:
    """A response with its id as text, and calls by id."""
    content = [{"type": "text", "text": name}] + [
        {"type": "toolCall", "id": c, "name": "bash", "arguments": {"command": "ls"}} for c in calls]
    return entry(name, parent, message={
        "role": "assistant", "content": content, "model": "m-1", "provider": "p", "stopReason": stop,
        "usage": {"input": sent, "output": 1, "cacheRead": 2, "cacheWrite": 3}, **more})


def result(name: str, parent: str | None, call: str, text: str = "ok", **more: Any) -> dict[str, Any]:
    """A tool's result."""
    return entry(name, parent, message={"role": "toolResult", "toolCallId": call, "toolName": "bash",
                                        "content": [{"type": "text", "text": text}], **more})


def chain(*makers: Any) -> Iterator[dict[str, Any]]:
    """Entries each of which follows the one before it."""
    parent = None
    for maker, name, *rest in makers:
        made = maker(name, parent, *rest)
        parent = made["id"]
        yield made


def session(*entries: Any, header: Any = HEADER) -> Transcript:
    """The session that a file of these entries holds."""
    data = b"".join(json.dumps(e).encode() + b"\n" for e in ([header] if header else []) + list(entries))
    (transcript,) = read_bytes(data, name="file.jsonl", format="pi")
    return transcript


def texts(t: Transcript) -> list[str]:
    """The texts of the main thread's log."""
    return [m.text for m in t.messages]


def codes(t: Transcript) -> list[str]:
    """The codes of the notes, in order."""
    return [n.code for n in t.notes]


def window(t: Transcript, number: int = -1) -> list[int | str]:
    """A compaction's window: log indices, and the texts of the messages put in."""
    return [p if isinstance(p, int) else p.text for p in t.compactions[number].window]


class TestMessages:
    def test_a_response_is_a_message_and_a_step(self) -> None:
        """Usage adds the cache to the input; call and result pair by id."""
        t = session(*chain((user, "go"), (answer, "look", "c-1"), (result, "r", "c-1"), (answer, "done")))

        assert ["user", "assistant", "tool", "assistant"] == [m.role for m in t.messages]
        assert Usage(input_uncached=10, cache_read=2, cache_write_5m=3, output=1) == t.steps[0].usage
        assert [("c-1", "bash", False)] == [(r.call_id, r.name, r.is_error) for m in t.messages for r in m.results]
        assert ("s-1", "m-1", "/repo", 4) == (t.session_id, t.model, t.cwd, t.message_count)

    def test_blocks_of_every_kind(self) -> None:
        """Thinking, text, calls with object or text arguments and images keep their kind."""
        content = [{"type": "thinking", "thinking": "hm", "thinkingSignature": "abc"}, {"type": "text", "text": "x"},
                   {"type": "toolCall", "id": "c", "name": "f", "arguments": "{bad"}]
        picture = [{"type": "image", "mimeType": "image/gif", "data": "aGVsbG8="}]
        t = session(entry("a", None, message={"role": "assistant", "content": content, "stopReason": "stop"}),
                    entry("r", "a", message={"role": "toolResult", "toolCallId": "c", "content": picture}))
        reasoning, text, call = t.messages[0].blocks

        assert (Reasoning(text="hm", opaque_bytes=3), Text(text="x")) == (reasoning, text)
        assert ("{bad", False) == ((call.arguments, call.is_object) if isinstance(call, ToolCall) else None)
        assert [("image/gif", 5)] == [(i.mime, i.size_bytes) for i in t.messages[1].results[0].images if i]
        assert not any(isinstance(b, Image) for b in t.messages[1].blocks)

    @pytest.mark.parametrize("stop", ["error", "aborted"])
    def test_a_cut_off_response_is_a_failed_step(self, stop: str) -> None:
        """It is not sent again: the log goes without it, its partial calls are kept aside, its tokens are billed."""
        t = session(*chain((user, "go"), (lambda n, p: answer(n, p, "c-1", stop=stop, errorMessage="no"), "part"),
                           (user, "again"), (answer, "fine")))

        assert ["go", "again", "fine"] == texts(t)
        assert [("no", None, 16), (None, 2, 16)] == [(s.error, s.response, s.usage.total if s.usage else 0)
                                                     for s in t.steps]
        assert ["c-1"] == [c.id for thread in t.abandoned for c in thread.tool_calls()]
        assert (4, ()) == (t.message_count, t.notes)

    def test_a_failed_request_without_content_leaves_only_its_step(self) -> None:
        """Zero tokens are no usage."""
        failed = entry("e", "go", message={"role": "assistant", "content": [], "stopReason": "error",
                                           "errorMessage": "400", "usage": {"input": 0, "output": 0}})
        t = session(user("go", None), failed)

        assert [("400", None)] == [(s.error, s.usage) for s in t.steps]
        assert ("fail", ()) == (t.outcome.value if t.outcome else None, t.abandoned)

    @pytest.mark.parametrize(("more", "text"), [
        ({"output": "a\nb", "exitCode": 0}, "Ran `ls`\n```\na\nb\n```"),
        ({"output": "", "exitCode": 2}, "Ran `ls`\n(no output)\n\nCommand exited with code 2"),
        ({"output": "a", "cancelled": True}, "Ran `ls`\n```\na\n```\n\n(command cancelled)"),
        ({"output": "a", "truncated": True, "fullOutputPath": "/t"},
         "Ran `ls`\n```\na\n```\n\n[Output truncated. Full output: /t]")])
    def test_shell_commands_of_the_person_are_told_to_the_model(self, more: dict[str, Any], text: str) -> None:
        """The model reads them in the user's name, in Pi's own words."""
        t = session(entry("b", None, message={"role": "bashExecution", "command": "ls", **more}))

        assert [(text, "injected", "bashExecution")] == [(m.text, m.origin, m.detail) for m in t.messages]

    def test_what_the_model_is_not_told_stays_out(self) -> None:
        """Excluded commands, custom data and labels are not in the log."""
        t = session(entry("b", None, message={"role": "bashExecution", "command": "x", "excludeFromContext": True}),
                    entry("c", "b", "custom", customType="state", data={}), user("go", "c"))

        assert ["go"] == texts(t)

    def test_messages_of_extensions_are_injected(self) -> None:
        """Custom messages, old hook messages and branch summaries are in the log, but nobody typed them."""
        t = session(entry("c", None, "custom_message", customType="tree", content="files"),
                    entry("h", "c", message={"role": "hookMessage", "customType": "hook", "content": "x"}),
                    entry("s", "h", "branch_summary", fromId="z", summary="left", usage={"input": 4, "output": 1}),
                    user("go", "s", attribution="agent"))

        assert [("injected", "tree"), ("injected", "hook"), ("injected", "branch_summary"), ("nudge", None)] == [
            (m.origin, m.detail) for m in t.messages]
        assert "left" in t.messages[2].text
        assert 5 == t.usage.total

    def test_a_recorded_system_prompt_is_the_systems(self) -> None:
        """Sections are one text; the tools it lists are kept beside it."""
        t = session(entry("p", None, message={"role": "system", "content": "", "sections": {"a": "A", "b": "B"},
                                              "toolsAdded": [1]}))

        assert [("system", "system", "A\n\nB", [1])] == [
            (m.role, m.origin, m.text, m.extra["toolsAdded"]) for m in t.messages]


class TestTree:
    def test_a_branch_that_was_left_is_billed_but_not_shown(self) -> None:
        """The last entry ends the active path; what is off it is one branch."""
        t = session(*chain((user, "a"), (answer, "b")), user("c", "b"), answer("d", "c", sent=100), user("e", "b"),
                    answer("f", "e"))

        assert ["a", "b", "e", "f"] == texts(t)
        assert [["c", "d"]] == [[m.text for m in thread.messages] for thread in t.abandoned]
        assert (4, 2, 138) == (t.message_count, len(t.steps), t.usage.total)

    def test_branches_of_branches_are_each_counted_once(self) -> None:
        """Two ends that share a stem: the stem belongs to the first."""
        t = session(user("root", None), user("x", "root"), answer("x1", "x"), answer("x2", "x"), answer("y", "root"))

        assert [["x", "x1"], ["x2"]] == [[m.text for m in thread.messages] for thread in t.abandoned]
        assert [(0, 0)] == [(s.start, s.response) for s in t.abandoned[1].steps]
        assert 48 == t.usage.total

    def test_a_second_root_leaves_the_first_behind(self) -> None:
        """Going back before the first prompt starts a tree of its own."""
        t = session(user("a", None), answer("b", "a"), user("c", None), answer("d", "c"))

        assert ["c", "d"] == texts(t)
        assert [["a", "b"]] == [[m.text for m in thread.messages] for thread in t.abandoned]

    @pytest.mark.parametrize("remark", [
        entry("l", None, "label", targetId="b", label="good"), entry("l", "a", "label", targetId="a", label="x"),
        entry("l", None, "session_info", name="n"), entry("l", None, "model_change", modelId="m-2"),
        entry("l", None, "usage", kind="cache_warm")])
    def test_a_remark_at_the_end_is_no_leaf(self, remark: dict[str, Any]) -> None:
        """Labels, names and marks without a parent do not move the end of the session."""
        t = session(user("a", None), answer("b", "a"), remark)

        assert (["a", "b"], ()) == (texts(t), t.abandoned)

    def test_a_mark_in_the_chain_does_move_the_end(self) -> None:
        """A model chosen after a step back is where the session goes on."""
        t = session(user("a", None), answer("b", "a"), user("c", "b"), entry("m", "b", "model_change", modelId="m-2"))

        assert (["a", "b"], 1, "m-2") == (texts(t), len(t.abandoned), t.model)

    def test_a_label_inside_the_chain_is_passed_through(self) -> None:
        """An entry that hangs on a label hangs on what the label names."""
        t = session(user("a", None), entry("l", None, "label", targetId="a"), answer("b", "l"))

        assert ["a", "b"] == texts(t)

    def test_a_missing_parent_is_bridged_and_noted(self) -> None:
        """When a line was lost, the next entry follows the one before it in the file."""
        t = session(user("a", None), answer("b", "gone"))

        assert (["a", "b"], ["missing-parent"]) == (texts(t), codes(t))

    def test_a_fork_without_header_starts_in_mid_tree(self) -> None:
        """The first entry's parent is elsewhere: it is a root; the session is named after the file."""
        t = session(user("a", "elsewhere"), answer("b", "a"), header=None)

        assert (["a", "b"], ["no-header"], "file") == (texts(t), codes(t), t.session_id)

    def test_circles_and_repeated_ids_end(self) -> None:
        """An entry that is its own ancestor, or comes twice, is read once."""
        t = session(user("a", "a"), answer("b", "a"), answer("b", "a"), user("b", "a"))

        assert ["a", "b"] == texts(t)
        assert ["duplicate", "duplicate"] == codes(t)

    def test_joined_files_are_two_sessions(self) -> None:
        """A header with another id begins another session."""
        data = b"".join(json.dumps(e).encode() + b"\n" for e in (
            HEADER, user("a", None), HEADER, {**HEADER, "id": "s-2"}, user("b", None)))
        first, second = read_bytes(data, format="pi")

        assert [("s-1", ["a"]), ("s-2", ["b"])] == [(t.session_id, texts(t)) for t in (first, second)]


class TestCompactions:
    def test_the_window_is_the_summary_and_what_was_kept(self) -> None:
        """From the first kept entry on; the counter is Pi's own, the request that wrote it is billed aside."""
        t = session(*chain((user, "a"), (answer, "b"), (user, "c"), (lambda n, p: entry(
            n, p, "compaction", summary="S", firstKeptEntryId="b", tokensBefore=99,
            usage={"input": 7, "output": 1}), "k"), (answer, "d")))
        (c,) = t.compactions

        assert [FRAME + "S\n</summary>", 1, 2] == window(t)
        assert (3, 99, "S", True) == (c.position, c.counter_before, c.summary, c.summary_readable)
        assert 40 == t.usage.total

    @pytest.mark.parametrize(("first", "notes"), [("gone", ["missing-kept-entry"]), (None, []),
                                                  ("k", ["missing-kept-entry"]), ("d", ["missing-kept-entry"])])
    def test_nothing_is_kept_where_the_kept_entry_is_not_before(self, first: str | None, notes: list[str]) -> None:
        """Pi then shows the summary alone."""
        t = session(*chain((user, "a"), (lambda n, p: entry(n, p, "compaction", summary="S", firstKeptEntryId=first),
                                         "k"), (answer, "d")))

        assert (1, notes) == (len(window(t)), codes(t))

    def test_version_1_counts_lines_with_the_header(self) -> None:
        """Entries have neither id nor parent; the first kept one is an index in which the header is 0."""
        bare = [user("a", None), answer("b", None), user("c", None)]
        lines = [{k: v for k, v in e.items() if k not in ("id", "parentId")} for e in bare]
        t = session(*lines, {"type": "compaction", "summary": "S", "firstKeptEntryIndex": 2, "tokensBefore": 5},
                    header={"type": "session", "id": "old", "modelId": "m-0", "branchedFrom": "/x.jsonl"})

        assert ["a", "b", "c"] == texts(t)
        assert [FRAME + "S\n</summary>", 1, 2] == window(t)
        assert (1, "/x.jsonl") == (t.extra["version"], t.parent_session)

    def test_a_compaction_in_a_branch_that_was_left_is_not_the_sessions(self) -> None:
        """It belongs to its branch; what it keeps may lie before the branch."""
        t = session(user("a", None), answer("b", "a"), entry("k", "b", "compaction", summary="S", firstKeptEntryId="a"),
                    user("c", "k"), user("d", "b"))

        assert ((), [], ["a", "b", "d"]) == (t.compactions, codes(t), texts(t))
        assert [1] == [len(thread.compactions) for thread in t.abandoned]

    def test_a_recorded_system_prompt_stays_in_front(self) -> None:
        """Newer versions repeat the system prompt in the compaction; it is the log's own."""
        prompt = {"role": "system", "content": "", "sections": {"a": "A"}}
        t = session(*chain((lambda n, p: entry(n, p, message=prompt), "p"), (user, "a"), (answer, "b"), (
            lambda n, p: entry(n, p, "compaction", summary="S", firstKeptEntryId="b", systemMessage=prompt), "k")))

        assert [0, FRAME + "S\n</summary>", 2] == window(t)

    def test_an_entry_can_be_edited_out_of_the_context(self) -> None:
        """From the edit on the model sees the replacement, or nothing; later compactions respect it."""
        t = session(*chain((user, "a"), (answer, "b", "c-1"), (result, "r", "c-1", "long"), (
            lambda n, p: entry(n, p, "context_edit", targetId="r", replacement={"content": "short"}), "x"), (
            lambda n, p: entry(n, p, "context_edit", targetId="a", replacement=None), "y"), (
            lambda n, p: entry(n, p, "compaction", summary="S", firstKeptEntryId="a"), "k")))

        assert [[0, 1, "short"], [1, "short"], [FRAME + "S\n</summary>", 1, "short"]] == [
            window(t, n) for n in range(3)]
        assert ["context_edit", "context_edit", None] == [c.trigger for c in t.compactions]
        replaced = t.compactions[0].window[2]
        assert ["c-1"] == [r.call_id for r in (replaced.results if isinstance(replaced, Message) else ())]

    def test_an_edit_of_what_is_not_in_the_log_changes_nothing(self) -> None:
        """Pi drops failed responses by an edit; they never were in the log."""
        t = session(*chain((user, "a"), (lambda n, p: answer(n, p, stop="error"), "b"), (
            lambda n, p: entry(n, p, "context_edit", targetId="b", replacement=None), "x")))

        assert () == t.compactions


class TestOddFiles:
    def test_unknown_types_are_named_once(self) -> None:
        """Entries and roles that no version knows are counted by name; the chain goes through them."""
        t = session(user("a", None), entry("z1", "a", "zz"), entry("z2", "z1", "zz"), answer("b", "z2"),
                    entry("w", "b", message={"role": "wizard"}))

        assert (["a", "b"], ["unknown-type", "unknown-type"]) == (texts(t), codes(t))
        assert "'zz' x 2" in t.notes[0].text

    def test_results_and_calls_without_each_other_are_noted(self) -> None:
        """A result before its call, and a call that nothing answered."""
        t = session(*chain((result, "r", "c-0"), (answer, "b", "c-1"), (user, "go")))

        assert ["result-without-call", "call-without-result"] == codes(t)

    def test_a_call_id_that_comes_back_is_made_unique(self) -> None:
        """Each result answers the call before it, though both calls have one id."""
        t = session(*chain((answer, "a", "x"), (result, "r", "x"), (answer, "b", "x"), (result, "s", "x")))

        assert ["x", "x#2"] == [r.call_id for m in t.messages for r in m.results]

    @pytest.mark.parametrize("broken", [
        5, [], {}, {"type": 3, "id": 4}, entry("m", "a"), entry("m", "a", message=7),
        entry("m", "a", message={"role": {}}),
        entry("m", "a", message={"role": "assistant", "content": [1, {"type": "toolCall"}], "usage": 4}),
        entry("m", "a", message={"role": "bashExecution"}), entry("m", "a", "compaction", firstKeptEntryId=[1]),
        entry("m", "a", "context_edit", targetId={}), entry("m", "a", "branch_summary", summary=4)])
    def test_a_malformed_entry_never_costs_the_rest(self, broken: Any) -> None:
        """Whatever one entry looks like, those around it are read."""
        t = session(user("a", None), broken, user("z", "a"))

        assert {"a", "z"} <= set(texts(t))

    @pytest.mark.parametrize(("first", "score"), [
        (HEADER, 95), (user("a", "b"), 90), ({"type": "message", "message": {"role": "user"}}, 50),
        ({"type": "session", "session_id": "x", "created_at": "y", "id": "z"}, 0), ({"type": "message"}, 0),
        ({"type": {"a": 1}, "message": {}}, 0)])
    def test_sniffing_looks_at_content_only(self, first: dict[str, Any], score: int) -> None:
        """A header or entries with parents are Pi's; Decode's header is not."""
        assert score == Pi().sniff(parse_source(json.dumps(first).encode(), "x.jsonl"))

    def test_a_header_alone_is_an_empty_session(self) -> None:
        """Nothing was said yet."""
        t = session()

        assert ("s-1", (), (), ()) == (t.session_id, t.messages, t.steps, t.notes)
