"""Summaries without a model: what a session said and did, sorted under the headings of a harness."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from evals.samples.recording import Entry

_RULE = re.compile(r"\b(never|always|must|keep|prefer|at most|leave|only|do not|don't|not more)\b", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+(?:- )?")


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What can be read off the entries of a session."""

    entries: tuple[Entry, ...]
    plan: tuple[Mapping[str, str], ...] = ()
    """The todo list as it stands."""

    @property
    def prompts(self) -> list[str]:
        """What the person said."""
        return [entry.text for entry in self.entries if entry.kind == "prompt"]

    @property
    def rules(self) -> list[str]:
        """Sentences of the person that forbid, ask for or limit something."""
        return [s for text in self.prompts for s in _SENTENCE.split(text) if _RULE.search(s)]

    @property
    def said(self) -> list[str]:
        """What the agent said beside its calls."""
        return [entry.text for entry in self.entries if entry.kind == "response" and entry.text]

    def files(self, *kinds: str) -> list[str]:
        """Files that successful actions of these kinds touched, in order of the first time."""
        return list(dict.fromkeys(e.action.target for e in self._done(*kinds)))

    def last_new(self, path: str) -> str:
        """The text that the last change of a file put there."""
        new = [str(e.action.get("new") or e.action.get("text"))
               for e in self._done("edit", "write") if e.action.target == path]
        return new[-1] if new else ""

    @property
    def failures(self) -> list[str]:
        """The last line of every command that failed and the reason of every edit that did."""
        return [f"{e.action.target.splitlines()[0][:90]}: {e.outcome.text.splitlines()[-1][:120]}"
                for e in self.entries if e.outcome.failed and e.outcome.text]

    def _done(self, *kinds: str) -> Iterable[Entry]:
        return (e for e in self.entries if e.action.kind in kinds and not e.outcome.failed)


def _bullets(lines: Sequence[str], most: int = 40) -> str:
    return "\n".join(f"- {line}" for line in lines[-most:]) or "- none so far"


def _changed(facts: Facts) -> str:
    parts = []
    for path in facts.files("edit", "write"):
        new = "\n".join(facts.last_new(path).splitlines()[:12])
        parts.append(f"- {path}, last change:\n```\n{new}\n```")
    return "\n".join(parts) or "- none so far"


def _open_items(facts: Facts) -> list[str]:
    return [f"{item['content']} ({item['status']})" for item in facts.plan if item["status"] != "completed"]


def _done_items(facts: Facts) -> list[str]:
    return [item["content"] for item in facts.plan if item["status"] == "completed"]


SECTIONS: Mapping[str, Callable[[Facts], str]] = {
    "goals": lambda facts: _bullets([_SENTENCE.split(text)[0] for text in facts.prompts]),
    "rules": lambda facts: _bullets(facts.rules),
    "prompts": lambda facts: _bullets([" ".join(text.split()) for text in facts.prompts]),
    "read": lambda facts: _bullets(facts.files("read")),
    "changed": _changed,
    "paths": lambda facts: _bullets(facts.files("edit", "write")),
    "failures": lambda facts: _bullets(facts.failures, 8),
    "said": lambda facts: _bullets(facts.said, 10),
    "done": lambda facts: _bullets(_done_items(facts) or facts.said[:-1][-6:]),
    "open": lambda facts: _bullets(_open_items(facts)),
    "now": lambda facts: facts.said[-1] if facts.said else "Nothing was said yet.",
}
"""Key of a section to the function that fills it."""

HEADINGS: Mapping[str, Sequence[tuple[str, str]]] = {
    "claude-code": (("1. What was asked for", "goals"), ("2. Ground rules", "rules"), ("3. Files read", "read"),
                    ("4. Files changed", "changed"), ("5. Errors", "failures"), ("6. All prompts", "prompts"),
                    ("7. Still to do", "open"), ("8. Work at this moment", "now")),
    "codex": (("Done and decided", "done"), ("Constraints and preferences", "rules"), ("Changed", "changed"),
              ("Failures seen", "failures"), ("Remaining", "open"), ("Now", "now")),
    "pi": (("## Goal", "goals"), ("## Constraints & Preferences", "rules"), ("## Progress", "said"),
           ("## Key Decisions", "changed"), ("## Next Steps", "now"), ("## Critical Context", "failures")),
    "mycodeagent": (("Objectives & Status", "goals"), ("Technical Context", "read"), ("Completed Milestones", "done"),
                    ("Key Insights & Decisions", "rules"), ("File System State", "paths")),
}
"""Format to the headings of its harness's summaries."""

OPENINGS: Mapping[str, str] = {
    "claude-code": "This session goes on from an earlier part whose window was full. A summary of that part follows.",
    "codex": "Another instance began this task and wrote down where it stands. Build on it; do not start over.",
    "pi": "", "mycodeagent": "",
    "decode": "Summary of the conversation so far (earlier turns were compacted):",
}


def summarise(format: str, facts: Facts) -> str:
    """The text of a summary in the manner of a format's harness."""
    headings = HEADINGS.get(format) or HEADINGS["pi"]
    parts = [f"{title}\n{SECTIONS[key](facts)}" for title, key in headings]
    opening = OPENINGS.get(format, "")
    return "\n\n".join([opening, *parts] if opening else parts)
