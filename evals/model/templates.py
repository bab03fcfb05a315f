"""What a summariser is told: the section names of the imitated harness in its own shape, the wording ours."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from evals.model.texts import QUOTED
from replay.policy.summarisers import DEFAULT_SECTIONS

SYSTEM = (f"You write the working memory of a coding agent. {QUOTED} Write only what the record says, with exact file "
          "names, commands, numbers, identifiers and error texts. Answer with the sections alone.")
_GUIDANCE: tuple[tuple[str, str], ...] = (
    ("goal|objective|intent|request|task snapshot", "what the person wants, in their terms, as it stands now"),
    ("constraint|preference|user.context", "rules, limits and wishes that the person stated, each word for word"),
    ("user message", "every message of the person, in order"),
    ("decision|insight|highlight|knowledge|discover", "what was decided or found out, with the reason"),
    ("error|problem|issue|blocked|fix", "errors that came up, to the letter, and what became of them"),
    ("test", "which tests exist, how they are run, and how they ended last"),
    ("version.control", "branch, commits, and what is not committed yet"),
    ("dep", "packages and services that the work relies on"),
    ("file|artifact|code|change", "files read or changed, by full path, and what is different in each"),
    ("next|pending|plan|remaining|todo|strategy|continue", "what is left to do, the very next action first"),
    ("progress|completed|done|milestone|action", "what has been finished, in order"),
    ("current|state|focus|status", "what was being done when the record ends"),
    ("environment|technical|concept|context|critical|detail", "facts without which the work cannot go on"),
)


def instruction(sections: Sequence[str], budget_tokens: int, carries: bool) -> str:
    """The request for a summary. `carries`: an earlier one is part of the input."""
    names = tuple(sections) or DEFAULT_SECTIONS
    asked = [f"Summarise the record for an agent that will go on without it, in at most {budget_tokens:,} tokens."]
    if carries:
        asked.append("An earlier summary stands in front of it. Write one summary of both: keep what is still true, "
                     "correct what has changed, and drop only what no longer matters.")
    shape = "\n".join(_shape(name) for name in names)
    asked.append(f"Use exactly these sections, in this order; write \"none\" where there is nothing:\n\n{shape}")
    return "\n\n".join(asked)


@cache
def _shape(name: str) -> str:
    """A section in the form that its name has in the harness: tags for names such as `overall_goal`, else headings."""
    said = guidance(name)
    return f"<{name}>\n({said})\n</{name}>" if re.fullmatch(r"[a-z]+(_[a-z]+)+", name) else f"## {name}\n({said})"


@cache
def guidance(section: str) -> str:
    """What belongs into a section, told from its name."""
    words = section.replace("_", " ").lower()
    return next((said for pattern, said in _GUIDANCE if re.search(pattern.replace(".", " "), words)),
                "what belongs under this heading")
