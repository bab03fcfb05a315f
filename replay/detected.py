"""What a file is, in the words of `rewindow detect`: counts, usage, compactions, notes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from replay.transcript import RecordedCompaction, Thread, Transcript, Usage


def describe(transcript: Transcript) -> dict[str, Any]:
    """A session as plain data; the keys are a contract."""
    main = transcript.main
    return {
        "path": transcript.path, "format": transcript.format, "session_id": transcript.session_id,
        "parent_session": transcript.parent_session, "harness_version": transcript.harness_version,
        "model": transcript.model, "messages": transcript.message_count, "steps": len(main.steps),
        "tool_calls": sum(1 for t in transcript.threads for _ in t.tool_calls()),
        "human_prompts": sum(m.origin == "human" for m in main.messages),
        "subagents": len(transcript.subagents), "abandoned_branches": len(transcript.abandoned),
        "usage": usage(transcript.threads), "peak_input_tokens": _peak(main),
        "compactions": [_compaction(main, c) for c in main.compactions],
        "outcome": asdict(transcript.outcome) if transcript.outcome else None,
        "notes": [{"line": n.line, "byte": n.byte, "code": n.code, "text": n.text} for n in transcript.notes],
    }


def usage(threads: Iterable[Thread]) -> dict[str, int]:
    """Summed usage, each response once; passes billed beside a response are added to the bill."""
    steps = [s for t in threads for s in t.steps if s.usage is not None]
    total = sum((s.usage for s in steps if s.usage), Usage())
    bill = total + total.side if total.side else total
    return {"requests": len(steps), "input_uncached": bill.input_uncached, "cache_read": bill.cache_read,
            "cache_write_5m": bill.cache_write_5m, "cache_write_1h": bill.cache_write_1h, "output": bill.output}


def _peak(thread: Thread) -> int | None:
    return max((s.usage.input_total for s in thread.steps if s.usage), default=None)


def _compaction(thread: Thread, compaction: RecordedCompaction) -> dict[str, Any]:
    before = [s for s in thread.steps if s.start < compaction.position and s.usage]
    after = [s for s in thread.steps if s.start >= compaction.position]
    nearest = next((s for s in after if s.usage), None)
    return {"step": after[0].number if after else None, "kind": compaction.kind, "trigger": compaction.trigger,
            "tokens_before": before[-1].usage.input_total if before and before[-1].usage else None,
            "tokens_after": nearest.usage.input_total if nearest and nearest.usage else None,
            "counter_before": compaction.counter_before, "counter_after": compaction.counter_after,
            "summary_readable": compaction.summary_readable, "line": compaction.line}
