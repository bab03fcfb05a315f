"""A verdict for people and machines: lines of text, Markdown for a pull request, JUnit XML."""

from __future__ import annotations

import os
import re
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

from evals.gate.gate import Verdict
from replay.commands.output import literal

_SHOWN = 20


def text(verdict: Verdict) -> str:
    """The verdict as lines for a terminal."""
    lines = [headline(verdict)]
    said: set[str] = set()
    for failure in verdict.failures[:_SHOWN]:
        # The first failure of a session explains it; what follows from it takes a line.
        lines += failure.lines()[:1] if failure.session in said else ["", *failure.lines()]
        said.add(failure.session)
    more = len(verdict.failures) - _SHOWN
    lines += ["", f"… and {more} more failures (--json and --markdown list them all)"] if more > 0 else []
    lines += ["", *(f"tier {tier}: {state}" for tier, state in verdict.tiers.items())]
    lines += [f"  {bound}" for bound in verdict.bounds if not bound.passed or bound.estimate not in (0.0, 1.0)]
    lines += [f"note: {warning}" for warning in verdict.warnings]
    return "\n".join(map(literal, lines))


def headline(verdict: Verdict) -> str:
    """The verdict in one line."""
    scope = (f"{verdict.policy['name']} over {verdict.sessions} sessions, {verdict.steps} steps, "
             f"against {verdict.against}")
    if verdict.accepted is not None:
        return f"accepted: {scope}: {verdict.accepted['old'] or 'nothing'} → {verdict.accepted['new']}"
    if verdict.passed:
        return f"{'unchanged' if 'accepted' in verdict.tiers.values() else 'passed'}: {scope}"
    sessions = {f.session for f in verdict.failures}
    bad = [b.name for b in verdict.bounds if not b.passed]
    said = [f"{len(sessions)} sessions differ"] if sessions else []
    return f"failed: {scope}: {'; '.join([*said, *(f'{name} may be worse' for name in bad)])}"


def markdown(verdict: Verdict) -> str:
    """The verdict for a pull request; text of transcripts stands in code, where nothing of it is rendered."""
    lines = [f"## Model views: {'unchanged' if verdict.passed else 'changed'}", "",
             markdown_text(headline(verdict)), "", "| tier | result |", "|---|---|"]
    lines += [f"| {tier} | {markdown_text(state)} |" for tier, state in verdict.tiers.items()]
    if verdict.failures:
        lines += ["", "| session | step | tier | what |", "|---|---|---|---|"]
        lines += [f"| {markdown_text(f.session)} | {'–' if f.step is None else f.step} | {f.tier} "
                  f"| {markdown_text(f.what)} |" for f in verdict.failures]
        lines += ["", *_code(verdict.failures[0].lines())]
    if verdict.bounds:
        lines += ["", "| metric | verdict | change | bound | limit | sessions |", "|---|---|--:|--:|--:|--:|"]
        lines += ["| " + " | ".join((b.name, b.verdict, *map(_figure, (b.estimate, b.bound, b.limit)), str(b.n))) + " |"
                  for b in verdict.bounds]
    lines += [""] if verdict.warnings else []
    return "\n".join([*lines, *(f"- {markdown_text(w)}" for w in verdict.warnings)]) + "\n"


def markdown_text(content: str) -> str:
    """Text that Markdown renders as it reads: no links, markup, mentions or table cells come out of it."""
    shown = re.sub(r"([\\`*_\[\]<>|~#!])", r"\\\1", literal(content).replace("\n", " "))
    return shown.replace("&", "&amp;").replace("@", "&#64;")


def _code(lines: list[str]) -> list[str]:
    """A block of code, indented: there is no fence that text could close."""
    return [f"    {literal(line)}" for line in lines]


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def junit(verdict: Verdict) -> str:
    """The verdict as JUnit XML: one case for each failure, and one for each tier and bound."""
    cases = [_case(f.tier, f.place, "\n".join(f.lines()), f.what) for f in verdict.failures]
    listed = {f.tier for f in verdict.failures}
    cases += [_case("tier", tier, "", "", skipped=state if state.startswith("not checked") else "")
              for tier, state in verdict.tiers.items() if tier not in listed]
    cases += [_case("tolerance", b.name, "" if b.passed else str(b), "" if b.passed else b.verdict,
                    skipped=b.why if b.verdict == "not checked" else "") for b in verdict.bounds]
    failures = sum(c.find("failure") is not None for c in cases)
    suite = ET.Element("testsuite", name="rewindow gate", tests=str(len(cases)), failures=str(failures), errors="0",
                       skipped=str(sum(c.find("skipped") is not None for c in cases)))
    suite.extend(cases)
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _case(group: str, name: str, body: str, message: str, skipped: str = "") -> ET.Element:
    case = ET.Element("testcase", classname=f"rewindow.{group}", name=_xml(name).replace("\n", " "))
    if skipped:
        ET.SubElement(case, "skipped", message=_xml(skipped))
    elif body:
        ET.SubElement(case, "failure", message=_xml(message)).text = _xml(body)
    return case


def _xml(content: str) -> str:
    """Text without the characters that no XML document may hold."""
    return literal(content).replace("\ufffe", "?").replace("\uffff", "?")


def write(path: Path, content: str) -> None:
    """Write a report beside and rename, so that it is complete or as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".", dir=path.parent)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(content)
    Path(name).chmod(0o644)
    Path(name).replace(path)
