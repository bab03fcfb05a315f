"""The Claude Code reader on the shared study material: breaking inputs, real sessions, the measuring corpus."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from replay.invariants import pairing
from replay.readers import read
from replay.transcript import Message, Transcript


def only(path: Path) -> Transcript:
    """The session of a file."""
    (t,) = read(path, "claude-code")
    return t


def case(bugcases: Path, number: str) -> Transcript:
    """A breaking input by its number."""
    return only(next(bugcases.glob(f"{number}-*.jsonl")))


class TestBreakingInputs:
    """The right answers for the inputs that break other readers."""

    @pytest.mark.parametrize(("number", "requests", "uncached", "output", "write", "read_"), [
        ("01", 1, 12, 311, 4000, 9000), ("02", 2, 4100, 65, 0, 0), ("03", 2, 11, 270, 1800, 41500),
        ("06", 1, 0, 0, 100_000, 0), ("20", 1, 17, 3, 0, 900),
    ])
    def test_usage(self, bugcases: Path, number: str, requests: int, uncached: int, output: int, write: int,
                   read_: int) -> None:
        """Each response counts once, with its largest output."""
        t = case(bugcases, number)
        usage = t.usage
        assert (requests, uncached, output) == (len(t.steps), usage.input_uncached, usage.output)
        assert (write, read_) == (usage.cache_write_5m + usage.cache_write_1h, usage.cache_read)
        assert () == t.notes

    def test_01_growing_snapshots(self, bugcases: Path) -> None:
        """The response is one message of three blocks that sent 13,012 tokens."""
        t = case(bugcases, "01")
        assert ["reasoning", "text", "tool_call"] == [b.kind for b in t.messages[1].blocks]
        assert [13_012] == [s.usage.input_total for s in t.steps if s.usage]

    def test_06_one_hour_cache_write(self, bugcases: Path) -> None:
        """Cache writes are split by lifetime."""
        usage = case(bugcases, "06").usage
        assert (60_000, 40_000) == (usage.cache_write_5m, usage.cache_write_1h)

    def test_07_unicode_line_separators(self, bugcases: Path) -> None:
        """The prompt holds all three separators and all three words."""
        text = case(bugcases, "07").messages[0].text
        assert all(part in text for part in ("\u2028", "\u2029", "\u0085", "first", "second", "third"))

    def test_08_byte_order_mark(self, bugcases: Path) -> None:
        """The first prompt is there."""
        t = case(bugcases, "08")
        assert (2, "First prompt, easily lost.") == (t.message_count, t.messages[0].text)

    def test_10_unknown_record_type(self, bugcases: Path) -> None:
        """The unknown type is named once with its count."""
        t = case(bugcases, "10")
        assert (["human", "model"], ["unknown-type"]) == ([m.origin for m in t.messages], [n.code for n in t.notes])
        assert re.search(r"zz-latch.* x 2", t.notes[0].text)

    def test_11_compact_summary_row(self, bugcases: Path) -> None:
        """Two prompts and one compaction; the window of the last request is the recap and the second prompt."""
        t = case(bugcases, "11")
        (found,) = t.compactions
        (recap,) = found.window
        assert isinstance(recap, Message)
        assert recap.text.startswith("This session continues")
        assert ["Now write the changelog."] == [m.text for m in t.messages[found.position:t.steps[-1].start]]
        assert ("auto", 150_070, 2) == (found.trigger, found.counter_before, found.position)
        assert 2 == sum(m.origin == "human" for m in t.messages)
        assert [150_010, 7912] == [s.usage.input_total for s in t.steps if s.usage]

    def test_12_tool_result_list(self, bugcases: Path) -> None:
        """The result has both sentences."""
        (result,) = case(bugcases, "12").messages[2].results
        assert "The port is 8471.\nIt is set in conf/serve.toml." == result.text

    def test_17_cut_last_record(self, bugcases: Path) -> None:
        """Two records and one cut tail with its byte offset."""
        t = case(bugcases, "17")
        assert (2, [("cut-tail", 3, 821)]) == (t.message_count, [(n.code, n.line, n.byte) for n in t.notes])

    def test_18_record_written_four_times(self, bugcases: Path) -> None:
        """Four records, three repeats in one note, the prompt once."""
        t = case(bugcases, "18")
        assert (4, ["duplicate"]) == (t.message_count, [n.code for n in t.notes])
        assert "x 3" in t.notes[0].text
        assert ["Hello.", "Only once, please."] == [m.text for m in t.messages if m.origin == "human"]


ROWS = [
    ("agent-name-lines.jsonl", 32, 13, 0), ("agent-test-hash-123.jsonl", 2, 0, 0),
    ("branchy-sonnet.jsonl", 219, 129, 0), ("edge-cases-fixture.jsonl", 13, 3, 0),
    ("eight-async-tasks.jsonl", 55, 40, 0), ("many-summary-lines.jsonl", 32, 12, 0),
    ("one-bad-line.jsonl", 89, 41, 0), ("small-micro-then-compact.jsonl", 119, 60, 1),
    ("three-compactions.jsonl", 486, 206, 3), ("tool-result-image.jsonl", 107, 58, 0),
    ("truncated-fixture.jsonl", 2, 0, 0), ("two-session-ids.jsonl", 118, 58, 0),
    ("v21-attachments.jsonl", 341, 182, 0), ("viewer-small.jsonl", 21, 12, 0), ("web-loglines-export.json", 33, 12, 0),
    # The table counts the whole file (45, 21): 20 of the messages and 8 of the calls are sub-agents'.
    ("inline-sidechain-small.jsonl", 25, 13, 0),
]
"""File, messages, tool calls of the main thread, full compactions."""


class TestRealSessions:
    """Public sessions of three major versions."""

    @pytest.mark.parametrize(("name", "messages", "calls", "compactions"), ROWS)
    def test_counts(self, transcripts: Path, name: str, messages: int, calls: int, compactions: int) -> None:
        """The counts are those of the table."""
        t = only(transcripts / "claude-code" / name)
        full = sum(c.kind == "full" for c in t.compactions)
        assert (messages, calls, compactions) == (t.message_count, sum(1 for _ in t.main.tool_calls()), full)

    @pytest.mark.parametrize(("name", "codes"), [
        ("edge-cases-fixture.jsonl", {"not-an-object": 3, "unknown-type": 1, "missing-parent": 1, "no-content": 1,
                                      "bad-message": 1, "bad-block": 1}),
        ("one-bad-line.jsonl", {"glued-values": 1, "duplicate": 1}), ("truncated-fixture.jsonl", {"cut-tail": 1}),
        ("many-summary-lines.jsonl", {"missing-parent": 1}), ("small-micro-then-compact.jsonl", {"missing-parent": 1}),
        *((row[0], {}) for row in ROWS if row[0] not in {
            "edge-cases-fixture.jsonl", "one-bad-line.jsonl", "truncated-fixture.jsonl", "many-summary-lines.jsonl",
            "small-micro-then-compact.jsonl"}),
    ])
    def test_notes_name_real_damage_alone(self, transcripts: Path, name: str, codes: dict[str, int]) -> None:
        """A sound file has no note; a damaged one has those of its damage."""
        found = [n.code for n in only(transcripts / "claude-code" / name).notes]
        assert codes == {code: found.count(code) for code in found}

    @pytest.mark.parametrize("name", [row[0] for row in ROWS if row[0] != "edge-cases-fixture.jsonl"])
    def test_every_result_follows_its_call(self, transcripts: Path, name: str) -> None:
        """In every thread each result stands behind its call and before the next response."""
        t = only(transcripts / "claude-code" / name)
        assert [] == [v for thread in t.threads for v in pairing(thread.messages)]

    def test_combs_are_one_branch(self, transcripts: Path) -> None:
        """A session with 65 parallel results has no abandoned branch."""
        assert () == only(transcripts / "claude-code" / "branchy-sonnet.jsonl").abandoned

    def test_inline_sidechains(self, transcripts: Path) -> None:
        """Inline sub-agents are linked to the calls that started them."""
        t = only(transcripts / "claude-code" / "inline-sidechain-small.jsonl")
        linked = [s for s in t.subagents if s.parent_call]
        assert [(6, 2), (14, 6)] == [(len(s.messages), sum(1 for _ in s.tool_calls())) for s in linked]
        assert 21 == sum(1 for thread in t.threads for _ in thread.tool_calls())

    def test_nested_sub_agent(self, transcripts: Path) -> None:
        """A sub-agent's calls inside progress records count in the file, not in the main thread."""
        (agent,) = only(transcripts / "claude-code" / "tool-result-image.jsonl").subagents
        assert ("toolu_01NcvkMUCRt6d6Nab9haKM7A", 36) == (agent.parent_call, sum(1 for _ in agent.tool_calls()))

    def test_image_in_a_result(self, transcripts: Path) -> None:
        """The image in a tool result is kept by type, size and hash alone."""
        t = only(transcripts / "claude-code" / "tool-result-image.jsonl")
        (image,) = (i for m in t.messages for r in m.results for i in r.images)
        assert image.size_bytes > 100_000

    def test_background_notices(self, transcripts: Path) -> None:
        """Notices of eight background agents reach the model with the next request."""
        t = only(transcripts / "claude-code" / "eight-async-tasks.jsonl")
        assert 8 == sum(m.detail == "task_notification" for m in t.messages)

    def test_two_sessions_in_one_file(self, transcripts: Path) -> None:
        """The second session began with an emptied context: its first request sent half of the one before."""
        t = only(transcripts / "claude-code" / "two-session-ids.jsonl")
        (found,) = t.compactions
        sent = [s.usage.input_total for s in t.steps if s.usage and s.start >= found.position - 4][:2]
        assert "clear" == found.kind
        assert sent[1] < 0.6 * sent[0]
        assert t.parent_session not in (None, t.session_id)

    def test_micro_and_full_compaction(self, transcripts: Path) -> None:
        """Both kinds are in order, with the harness's own counters."""
        found = only(transcripts / "claude-code" / "small-micro-then-compact.jsonl").compactions
        assert [("micro", 60_888), ("full", 155_068)] == [(c.kind, c.counter_before) for c in found]

    def test_attachments_are_seen_by_the_next_request(self, transcripts: Path) -> None:
        """What was attached in a 2.1 file was sent: the skill listing stands before the first response."""
        t = only(transcripts / "claude-code" / "v21-attachments.jsonl")
        before = {m.detail for m in t.messages[:t.steps[0].start]}
        assert {"hook_success", "skill_listing", "deferred_tools_delta", "agent_listing_delta"} <= before


@pytest.fixture(scope="module")
def corpus(shared: Path) -> dict[str, int]:
    """Full compactions of each Claude Code file, from the corpus's own table."""
    table = (shared / "corpus" / "README.md").read_text()
    found = re.findall(r"^\| (claude-code/\S+) \| \d+ \| \d+ \| (\d+) \|", table, re.M)
    return {name: int(count) for name, count in found}


def test_measuring_corpus(shared: Path, corpus: dict[str, int]) -> None:
    """All 78 sessions read without an unknown type, with the table's compactions and with paired results."""
    allowed = {"missing-parent", "glued-values", "duplicate"}
    for name, compactions in corpus.items():
        t = only(shared / "corpus" / name)
        faults = {v.fault for thread in t.threads for v in pairing(thread.messages)}
        assert compactions == sum(c.kind == "full" for c in t.compactions), name
        assert set() == {n.code for n in t.notes} - allowed, name
        assert faults <= {"missing-result"}, name
    assert 78 == len(corpus)
