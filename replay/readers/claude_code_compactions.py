"""The compactions that Claude Code recorded: summaries, what was kept or put back, blanked results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from replay.readers.claude_code_lines import Line, string
from replay.readers.common import whole
from replay.transcript import NOTHING, Message, RecordedCompaction


@dataclass
class Opened:
    """A full compaction whose parts are still being read."""

    line: Line
    """The boundary, or the summary where the file has no boundary."""
    summaries: list[Message] = field(default_factory=list)
    inserted: list[Message] = field(default_factory=list)
    """Attachments that the harness put back behind the summary."""
    copies: list[str] = field(default_factory=list)
    """Uuids of kept messages that were written again."""

    def close(self, position: int, places: Mapping[str, int]) -> RecordedCompaction:
        """The compaction, in effect once `position` messages existed; `places` gives the log index of a uuid."""
        meta = _meta(self.line, "compactMetadata")
        kept = self.kept(meta, places)
        summary = "\n".join(m.text for m in self.summaries)
        return RecordedCompaction(
            position=position, kind="full", window=(*self.summaries, *kept, *self.inserted),
            trigger=string(meta.get("trigger")), counter_before=whole(meta.get("preTokens")) or None,
            counter_after=whole(meta.get("postTokens")) or None, summary=summary or None,
            summary_readable=bool(summary.strip()), line=self.line.number,
            extra=MappingProxyType({"compactMetadata": meta}) if meta else NOTHING)

    def kept(self, meta: Mapping[str, Any], places: Mapping[str, int]) -> list[int]:
        """Log indices of the messages that were kept verbatim, each once."""
        listed = meta.get("preservedMessages")
        if isinstance(listed, dict) and isinstance(listed.get("uuids"), list):
            return _indices(listed["uuids"], places)
        segment = meta.get("preservedSegment")
        if isinstance(segment, dict):
            head, tail = (places.get(str(segment.get(key))) for key in ("headUuid", "tailUuid"))
            if head is not None and tail is not None:
                return list(range(head, tail + 1))
        return _indices(self.copies, places)


def promises_more(line: Line) -> bool:
    """Whether a boundary says that messages were kept."""
    meta = _meta(line, "compactMetadata")
    return bool(meta.get("preservedMessages") or meta.get("preservedSegment"))


def micro(line: Line, messages: Sequence[Message]) -> RecordedCompaction:
    """A micro-compaction that blanks the results of the calls it names, among the messages so far."""
    meta = _meta(line, "microcompactMetadata")
    named = meta.get("compactedToolIds")
    ids = {i for i in named if isinstance(i, str)} if isinstance(named, list) else set()
    blanked = tuple(m.index for m in messages if m.role == "tool" and any(r.call_id in ids for r in m.results))
    before, saved = whole(meta.get("preTokens")), whole(meta.get("tokensSaved"))
    return RecordedCompaction(
        position=len(messages), kind="micro", elided=blanked, trigger=string(meta.get("trigger")),
        counter_before=before or None, counter_after=before - saved if 0 < saved <= before else None,
        line=line.number, extra=MappingProxyType({"microcompactMetadata": meta}) if meta else NOTHING)


def _indices(uuids: Iterable[Any], places: Mapping[str, int]) -> list[int]:
    found = (places.get(u) for u in uuids if isinstance(u, str))
    return list(dict.fromkeys(i for i in found if i is not None))


def _meta(line: Line, key: str) -> dict[str, Any]:
    found = line.value.get(key)
    return found if isinstance(found, dict) else {}
