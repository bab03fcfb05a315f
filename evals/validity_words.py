"""The validity experiments in tables and sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from replay.commands.output import number

Row = Sequence[str]


@dataclass(frozen=True, slots=True)
class Block:
    """A table with what it means."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Row]
    sentences: Sequence[str] = ()


def blocks(report: Mapping[str, Any]) -> list[Block]:
    """The tables of the experiments that were run."""
    made: list[Block] = []
    if "V0" in report:
        made.append(_cache(report["V0"]))
    if "V1" in report:
        made += _rereads(report["V1"])
    if "V2" in report:
        made += _edits(report["V2"])
    return made


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value * 100:.1f} %"


def _cache(found: Mapping[str, Any]) -> Block:
    rows = [("sessions with cache reads", number(found["sessions"])), ("steps", number(found["steps"])),
            ("input tokens", number(found["input_tokens"])), ("of them read", _share(found["recorded_read_share"])),
            ("bias, share of input tokens", _share(found["bias"])), ("warm pairs", number(found["warm_pairs"])),
            ("warm pairs within 2 %", _share(found["warm_within_2_percent"])),
            ("read = read + write before", _share(found["identity_share"])),
            *((f"missed: {cause}", number(count)) for cause, count in sorted(found["misses"].items())),
            *((f"gap {name}: pairs, within 2 %", f"{number(b['pairs'])}, {_share(b['within_2_percent'])}")
              for name, b in found["by_gap"].items()),
            ("unexplained, share of tokens", _share(found["unexplained_token_share"]))]
    verdict = ("The cache model explains the recorded reads: bias under 3 %, at least 85 % of warm pairs within 2 %."
               if found["passes"] else "The cache model does not explain the recorded reads of these sessions: do not "
               "act on modelled cache costs." if found["sessions"] else "No session records cache reads.")
    return Block("V0: cache model against bills", ("", "value"), rows, (verdict,))


def _rereads(found: Mapping[str, Any]) -> Iterator[Block]:
    analyses = found["analyses"]
    lines: dict[str, Callable[[Mapping[str, Any]], str]] = {
        "files read again": lambda a: f"{a['read_again']:,} of {a['read_again'] + a['not_read_again']:,}",
        **{f"AUC of {score.replace('_', ' ')}": _auc_of(score) for score in next(iter(analyses.values()))["auc"]},
        "gain over recency": lambda a: _with_interval(a["auc_gain_over_recency"]),
        "AUC of shuffled scores": lambda a: number(a["auc_shuffled"], 3),
        "odds of lost, real": lambda a: number(a["odds_real"], 2),
        "odds of lost, placebo": lambda a: number(a["odds_placebo"], 2),
        "ratio of the two": lambda a: _with_interval(a["odds_ratio"]),
        "odds of reading a lost file again, real to placebo": lambda a: _with_interval(a["lost_odds"])}
    rows = [(name, *(cell(a) for a in analyses.values())) for name, cell in lines.items()]
    title = (f"V1: what is read again after {found['events']:,} compactions in {found['sessions']:,} sessions "
             f"({found['units']:,} files, {found['lost']:,} lost; {found['placebo_events']:,} placebos, "
             f"{found['placebo_units']:,} files)")
    yield Block(title, ("", *map(_name, analyses)), rows)
    main = analyses[found["main"]]
    bins = [(f"from {b['age_from']} steps", *(str(part[k]) for part in (b, p) for k in _CELLS))
            for b, p in zip(main["bins_real"], main["bins_placebo"], strict=True)]
    columns = ("last seen", "lost, again", "lost, not", "kept, again", "kept, not", "placebo lost, again", "lost, not",
               "kept, again", "kept, not")
    yield Block("V1: counts by steps since a file was last seen (within 20 steps)", columns, bins)
    tails = [(number(t["messages"]), number(t["lost"]), number(t["lost_read_again"]), number(t["kept"]),
              number(t["kept_read_again"])) for t in found["tails"]]
    yield Block("V1: tails of so many kept messages", ("messages", "lost", "read again", "kept", "read again"), tails,
                (_verdict(found, "what the metrics call lost is read again more than recency explains"),))


_CELLS = ("lost_hit", "lost_missed", "kept_hit", "kept_missed")


def _auc_of(score: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda found: number(found["auc"][score]["value"], 3)


def _name(key: str) -> str:
    return key.replace("_unforced", ", not forced").replace("_", " ")


def _with_interval(found: Mapping[str, Any]) -> str:
    if found["value"] is None:
        return "–"
    if found["low"] is None:
        return f"{found['value']:.2f} [no interval]"
    return f"{found['value']:.2f} [{found['low']:.2f}, {found['high']:.2f}]"


def _edits(found: Mapping[str, Any]) -> Iterator[Block]:
    rows = [("all edits: " + name, *_ratio_cells(row)) for name, row in found["risk_ratios"].items()]
    rows += [(f"{name}: not-found", *_ratio_cells(row)) for name, row in found["by_harness"].items()]
    rows += [(f"file {name}: not-found", *_ratio_cells(row)) for name, row in found["by_file"].items()]
    verdicts = ", ".join(f"{count:,} {name}" for name, count in sorted(found["verdicts"].items()))
    failures = ", ".join(f"{count:,} {name}" for name, count in sorted(found["failures"].items())) or "none"
    lines = (f"Failures: {failures}. Of the edits whose text was not found {_share(found['sensitivity'])} had been "
             f"called unsafe; of the unsafe ones {_share(found['precision'])} failed that way.",
             f"{found['safe_after_reread']:,} of {found['safe_edits']:,} safe edits came right after reading the file "
             f"again; {found['made_safe_by_reread']:,} ({_share(found['made_safe_share'])}) only so were safe.",
             _verdict(found, "edits that are called unsafe fail more often because their text is not found"))
    yield Block(f"V2: {found['edits']:,} recorded edits ({verdicts})",
                ("failure", "unsafe", "failed", "safe", "failed", "risk ratio"), rows, lines)


def _ratio_cells(row: Mapping[str, Any]) -> Row:
    high = "∞" if row["high"] is None else f"{row['high']:.1f}"
    known = row["low"] is not None
    value = "–" if row["risk_ratio"] is None else f"{row['risk_ratio']:.1f}"
    return (number(row["unsafe"]), number(row["unsafe_failed"]), number(row["safe"]), number(row["safe_failed"]),
            f"{value} [{row['low']:.1f}, {high}]" if known else "–")


def _verdict(found: Mapping[str, Any], claim: str) -> str:
    if found["stopped"]:
        return f"No verdict: {found['stopped']}."
    return f"Supported: {claim}." if found["passes"] else f"Not supported on these sessions: {claim}."
