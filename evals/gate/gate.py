"""The gate: settings of the call and of the golden folder, every session compared, one verdict."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evals.cohort import Cohort
from evals.gate.check import Failure
from evals.gate.golden import SCHEMA, Golden, accept, golden_name, load
from evals.gate.record import HEADLINE, TIERS, Record, Tier
from evals.gate.run import FileOutcome, Job, Outcome, run
from evals.gate.tolerance import Bound, bounds, margins
from evals.gate.versions import TIER_NEEDS, changed, rewindow_version, versions
from evals.kept.store import Kept
from evals.trial import Settings
from replay.errors import ConfigError, ReadError
from replay.find import Found
from replay.policy.load import spec, spec_hash
from replay.policy.policy import Policy

_FIXED = ("window", "output_reserve", "summariser", "reader")
"""Settings under which two sets of views cannot be compared at all when they differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What is asked of the gate."""

    files: Sequence[Found]
    policy: Policy
    policy_name: str
    """As the user wrote it."""
    settings: Settings
    golden: Path | None = None
    baseline: Policy | None = None
    baseline_name: str = ""
    tiers: Sequence[Tier] = TIERS
    margins: Sequence[str] = ()
    only: Sequence[str] = ()
    accept: bool = False
    reason: str | None = None
    jobs: int | None = None
    kept: Kept | None = None
    """Where sessions are kept that were read and counted before."""
    remarks: Sequence[str] = ()
    cohort: Cohort | None = None
    """The frozen list that the files are of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the gate found; the same input gives the same verdict, in whatever order and on how many cores."""

    policy: Mapping[str, Any]
    against: str
    sessions: int
    steps: int
    tiers: Mapping[str, str]
    """Tier to `passed`, `failed`, or why it was not checked."""
    failures: tuple[Failure, ...] = ()
    bounds: tuple[Bound, ...] = ()
    warnings: tuple[str, ...] = ()
    accepted: Mapping[str, Any] | None = field(default=None)

    @property
    def passed(self) -> bool:
        """Whether nothing failed."""
        return not self.failures and all(b.passed for b in self.bounds)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"passed": self.passed, "policy": dict(self.policy), "against": self.against,
                "sessions": self.sessions, "steps": self.steps, "tiers": dict(self.tiers),
                "failures": [f.to_json() for f in self.failures], "tolerance": [b.to_json() for b in self.bounds],
                "warnings": list(self.warnings), "accepted": dict(self.accepted) if self.accepted else None}


def gate(call: Call, done: Callable[[FileOutcome], None] = lambda _: None) -> Verdict:
    """Compare, or with `accept` make the golden folder hold what is found. Raises ReadError without sessions."""
    golden = load(call.golden) if call.golden is not None else None
    if golden is None and call.baseline is None and not call.accept:
        raise ConfigError("--golden", str(call.golden), "no golden folder there yet; make one with --accept")
    settings = gate_settings(call)
    if golden is not None and not call.accept:
        require_same(golden, settings)
        _require_cohort(golden, call.cohort)
    stale = changed(golden.settings["versions"], settings["versions"]) if golden else {}
    job = Job(policy=call.policy, settings=call.settings, golden=call.golden, baseline=call.baseline,
              tiers=tuple(call.tiers), carry=_may_carry(call, golden, settings, stale),
              compare=comparable_tiers(call.tiers, stale), only=frozenset(call.only), kept=call.kept)
    outcomes, unreadable = _collect(call, job, done)
    if call.accept:
        return _accepted(call, golden, settings, outcomes, unreadable)
    return _judged(call, golden, settings, stale, outcomes, unreadable)


def gate_settings(call: Call) -> dict[str, Any]:
    """What a golden folder of this call says about itself."""
    capacity = call.settings.capacity
    policy = {"name": call.policy.name, "spec_hash": spec_hash(call.policy), "spec": spec(call.policy)}
    sizes = {HEADLINE[name]: margin.size for name, margin in margins(call.margins).items()}
    return {"schema": SCHEMA, "policy": policy, "window": capacity.window, "output_reserve": capacity.output_reserve,
            "summariser": call.settings.summariser, "reader": call.settings.reader, "tiers": list(call.tiers),
            "made_by": rewindow_version(), "versions": versions(call.settings), "margins": sizes,
            "cohort": call.cohort.hash if call.cohort else None}


def _may_carry(call: Call, golden: Golden | None, settings: Mapping[str, Any], stale: Mapping[str, str]) -> bool:
    """Whether what a golden's views were measured to lose holds for the same views without measuring again."""
    return not call.accept and golden is not None and not stale and golden.settings["made_by"] == settings["made_by"]


def require_same(golden: Golden, settings: Mapping[str, Any]) -> None:
    """Raises ConfigError where the golden's views are for another window, summariser or reader."""
    for name in _FIXED:
        if golden.settings.get(name) != settings[name]:
            raise ConfigError("--golden", name, f"the golden folder holds views for {golden.settings.get(name)}, "
                                                f"asked for {settings[name]}; those do not compare")


def _require_cohort(golden: Golden, cohort: Cohort | None) -> None:
    held = golden.settings.get("cohort")
    if cohort is not None and held is not None and not golden.records.keys() >= cohort.names:
        raise ConfigError("--cohort", cohort.hash, f"the golden folder is of cohort {held}, which does not hold all "
                                                   "of these sessions: like would not be compared with like")


def comparable_tiers(tiers: Sequence[Tier], stale: Mapping[str, str]) -> tuple[Tier, ...]:
    """The tiers that depend on nothing that changed."""
    return tuple(t for t in tiers if not any(need in stale for need in TIER_NEEDS[t]))


def _collect(call: Call, job: Job, done: Callable[[FileOutcome], None]) -> tuple[dict[str, Outcome], list[str]]:
    """Outcomes by name in the order of the names, and what could not be read. A copy of a recording counts once."""
    found: dict[str, Outcome] = {}
    unreadable: list[str] = []
    for result in run(call.files, job, call.jobs):
        done(result)
        unreadable += [f"{result.path}: not read: {result.unreadable}"] if result.unreadable else []
        for outcome in result.sessions:
            known = found.get(outcome.name)
            if call.cohort is None or outcome.name in call.cohort.names or outcome.record is None:
                found[outcome.name] = outcome if known is None or outcome.path < known.path else known
    if not found and call.cohort is None:
        reasons = "; ".join(sorted(unreadable)[:3])
        raise ReadError("input", f"no session could be read. {reasons}" if reasons else "no session found")
    return {name: found[name] for name in sorted(found)}, sorted(unreadable)


def _accepted(call: Call, golden: Golden | None, settings: dict[str, Any], outcomes: Mapping[str, Outcome],
              unreadable: Sequence[str]) -> Verdict:
    failures = tuple(f for o in outcomes.values() for f in o.failures if o.record is None)
    records = {name: o.record for name, o in outcomes.items() if o.record is not None}
    if call.only and golden is not None:
        kept = {n: r for n, r in golden.records.items() if r.session not in call.only}
        records = {**kept, **records}
    failures += tuple(_absent(call, outcomes))
    entry = None
    if not failures and call.golden is not None:
        entry = accept(call.golden, golden, settings, records, call.reason)
    return replace(_verdict(call, outcomes), tiers=dict.fromkeys(call.tiers, "accepted"), failures=failures,
                   warnings=(*call.remarks, *unreadable, *_bad_facts(records)), accepted=entry)


def _verdict(call: Call, outcomes: Mapping[str, Outcome]) -> Verdict:
    against = str(call.golden) if call.baseline is None else call.baseline_name
    return Verdict(policy={"name": call.policy.name, "spec_hash": spec_hash(call.policy)}, against=against, tiers={},
                   sessions=len(outcomes), steps=sum(o.steps for o in outcomes.values()))


def _judged(call: Call, golden: Golden | None, settings: Mapping[str, Any], stale: Mapping[str, str],
            outcomes: Mapping[str, Outcome], unreadable: Sequence[str]) -> Verdict:
    failures = [replace(f, command=_command(call, f)) for o in outcomes.values() for f in o.failures]
    failures += _cohort_failures(call, golden, outcomes)
    pairs = [(o.record, o.golden) for o in outcomes.values() if o.record and o.golden]
    limits = margins([*_kept_margins(golden), *call.margins])
    judged = bounds(pairs, limits, stale) if "tolerance" in call.tiers else []
    tiers: dict[str, str] = {}
    for tier in call.tiers:
        why = "; ".join(stale[need] for need in TIER_NEEDS[tier] if need in stale)
        missed = tier == "tolerance" and not all(b.passed for b in judged)
        failed = missed or any(f.tier in (tier, "policy", "baseline") for f in failures)
        tiers[tier] = "failed" if failed else f"not checked: {why}" if why else "passed"
    records = {name: o.record for name, o in outcomes.items() if o.record is not None}
    remarks = [*call.remarks, *unreadable, *_stale_words(tiers), *_policy_words(golden, settings), *_bad_facts(records)]
    return replace(_verdict(call, outcomes), tiers=tiers, failures=tuple(failures), bounds=tuple(judged),
                   warnings=tuple(remarks))


def _kept_margins(golden: Golden | None) -> list[str]:
    return [f"{name}={size}" for name, size in golden.settings["margins"].items()] if golden else []


def _cohort_failures(call: Call, golden: Golden | None, outcomes: Mapping[str, Outcome]) -> list[Failure]:
    """Sessions that only one side has: without them like is not compared with like."""
    absent = _absent(call, outcomes)
    if golden is None:
        return absent
    held = {n: r for n, r in golden.records.items() if _is_asked_for(call, n, r)}
    fresh = {n: o for n, o in outcomes.items() if n not in held and o.record is not None}
    gone = {n: r for n, r in held.items() if n not in outcomes}
    names = {r.session for r in gone.values()}
    found = [Failure(session=o.session, path=o.path, tier="cohort", command=_command(call, o),
                     what="the recording is not the one of the golden" if o.session in names
                     else "not in the golden folder; --accept takes it in") for o in fresh.values()]
    known = {o.session for o in fresh.values()} | {o.session for o in outcomes.values() if o.record is None}
    known |= {f.session for f in absent}
    return absent + found + [
        Failure(session=r.session, path="", tier="cohort", what="in the golden folder but not in the input")
        for r in gone.values() if r.session not in known]


def _is_asked_for(call: Call, name: str, record: Record) -> bool:
    by_cohort = call.cohort is None or name in call.cohort.names
    return by_cohort and (not call.only or record.session in call.only)


def _absent(call: Call, outcomes: Mapping[str, Outcome]) -> list[Failure]:
    """Sessions of the cohort that were not found as they were when it was frozen."""
    if call.cohort is None:
        return []
    failed = {o.session for o in outcomes.values() if o.record is None}
    return [Failure(session=s["session"], path=s["path"], tier="cohort",
                    what="the cohort's recording is gone or has changed since it was frozen")
            for s in call.cohort.sessions
            if golden_name(s["session"], s["recording"]) not in outcomes and s["session"] not in failed
            and (not call.only or s["session"] in call.only)]


def _command(call: Call, about: Failure | Outcome) -> str:
    """One command that shows a failure again."""
    words = ["rewindow", "gate", about.path, "--session", about.session]
    if call.baseline is None:
        words += ["-p", call.policy_name, "--golden", str(call.golden)]
    else:
        words += ["--candidate", call.policy_name, "--baseline", call.baseline_name]
    return shlex.join([*words, *_settings_words(call)])


def _settings_words(call: Call) -> list[str]:
    """The settings that the call must repeat; a golden folder knows those that decide its views."""
    settings, capacity, reader = call.settings, call.settings.capacity, call.settings.reader
    said: dict[str, Any] = {"--window": capacity.window, "--output-reserve": capacity.output_reserve or None,
                            "--summariser": settings.summariser, "--reader": reader} if call.baseline else {}
    said |= {"--tokenizer": settings.tokenizer, "--prices": settings.pricing.prices,
             "--cache-model": settings.pricing.cache}
    usual = {"--tokenizer": "o200k_base", "--cache-model": "auto", "--summariser": "extractive"}
    return [word for name, value in said.items() if value is not None and value != usual.get(name)
            for word in (name, str(value))]


def _stale_words(tiers: Mapping[str, str]) -> list[str]:
    words = [f"{tier} {why}" for tier, why in tiers.items() if why.startswith("not checked")]
    return [f"{'; '.join(words)}: --accept renews it"] if words else []


def _policy_words(golden: Golden | None, settings: Mapping[str, Any]) -> list[str]:
    if golden is None or golden.settings["policy"]["spec_hash"] == settings["policy"]["spec_hash"]:
        return []
    before = golden.settings["policy"]
    return [f"the golden was made with other settings of the policy ({before['name']}, {before['spec_hash']}; "
            f"now {settings['policy']['name']}, {settings['policy']['spec_hash']})"]


def _bad_facts(records: Mapping[str, Record]) -> list[str]:
    """Faults that a golden may hold, but that nobody should overlook."""
    found = []
    for tier, word, meaning in (("views", "pairing", "part a call from its result"),
                                ("counts", "overflow", "hold views that do not fit the window")):
        bad = [r.session for r in records.values()
               for line in r.tiers.get(tier, ())  # type: ignore[call-overload]
               if line.startswith(f"{word} ") and line != f"{word} 0"]
        if bad:
            found.append(f"{len(bad)} of {len(records)} sessions {meaning}: {', '.join(sorted(bad)[:3])}"
                         f"{', …' if len(bad) > 3 else ''}")
    return found
