"""Summaries of a whole run by a model: written first, several sessions at a time, then taken from the cache.

The comparison itself makes no request: its workers find every summary among the kept answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from evals.model.asks import Ask
from evals.model.bill import Estimate
from evals.model.client import Client
from evals.model.config import Models
from evals.model.summariser import ModelSummariser
from replay.engine import Session
from replay.errors import ReadError, SummaryMissing
from replay.find import Found, read_found
from replay.policy.base import Capacity, Summary, SummaryRequest
from replay.policy.policy import Policy
from replay.policy.summarisers import LengthModel
from replay.tokens import TokenCounter, tokenizer

Loaded = Sequence[tuple[Found, Sequence[Session]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A model's summaries as a trial takes them: from the cache alone, in whatever process it is."""

    models: Models

    def summariser(self, session: str) -> ModelSummariser:
        """The summariser of a session."""
        return ModelSummariser(client=Client(replace(self.models, offline=True)), session=session)


def written(models: Models) -> Written:
    """Without what may differ between two calls of the same comparison: limits and ways of asking."""
    usual = Models()
    return Written(models=replace(models, budget_usd=None, offline=True, concurrency=usual.concurrency,
                                  timeout=usual.timeout, retries=usual.retries, backoff=usual.backoff))


@dataclass(frozen=True, slots=True)
class Foreseen:
    """Notes what would be asked and goes on with a stand-in of the usual length; what is kept is taken as it is."""

    real: ModelSummariser
    asks: list[Ask]

    @property
    def name(self) -> str:
        """The name of the summariser that it stands for."""
        return self.real.name

    def summarise(self, request: SummaryRequest) -> Summary | None:
        """The kept summary, else a stand-in."""
        try:
            return self.real.summarise(request)
        except SummaryMissing:
            self.asks.append(self.real.first_ask(request))
            return LengthModel().summarise(request)


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Writes the summaries of sessions under policies."""

    client: Client
    policies: Sequence[Policy]
    capacity: Capacity

    def foresee(self, loaded: Loaded) -> Estimate:
        """What will be asked, before it is. Raises ConfigError where the budget cannot be enough for it."""
        offline = Client(replace(self.client.models, offline=True))
        asks: list[Ask] = []
        for session in _sessions(loaded):
            for policy in self.policies:
                self._lane(session, policy, Foreseen(ModelSummariser(client=offline), asks))
        return self.client.estimate(asks)

    def write(self, loaded: Loaded,
              done: Callable[[str], None] = lambda _: None) -> tuple[list[dict[str, Any]], list[str]]:
        """The entries of all summaries, and what went wrong. Ctrl-C stops asking; what was written is kept."""
        sessions = _sessions(loaded)
        with ThreadPoolExecutor(self.client.models.concurrency) as pool:
            running = [pool.submit(self._session, s, done) for s in sessions]
            try:
                results = [r.result() for r in running]
            except KeyboardInterrupt:
                self.client.stop()
                results = [r.result() for r in running]
        return [e for entries, _ in results for e in entries], [p for _, problems in results for p in problems]

    def _session(self, session: Session, done: Callable[[str], None]) -> tuple[list[dict[str, Any]], list[str]]:
        entries: list[dict[str, Any]] = []
        problems = []
        for policy in self.policies:
            name = session.transcript.session_id
            writer = ModelSummariser(client=self.client, session=name)
            try:
                self._lane(session, policy, writer)
            except SummaryMissing as error:
                problems.append(f"{name} under {policy.name}: {error}")
            entries += [{"policy": policy.name, **entry} for entry in writer.made]
        done(session.transcript.session_id)
        return entries, problems

    def _lane(self, session: Session, policy: Policy, writer: Any) -> None:
        if policy.own is None:
            session.replay(policy, self.capacity, writer)


def load(files: Sequence[Found], reader: str | None, words: str) -> Loaded:
    """The sessions of files; those that cannot be read are the comparison's to report."""
    counter: Any = TokenCounter(tokenizer(words))
    found = []
    for file in files:
        try:
            found.append((file, [Session(t, counter) for t in read_found(file, reader)]))
        except ReadError:
            continue
    return found


def _sessions(loaded: Loaded) -> list[Session]:
    return [session for _, sessions in loaded for session in sessions]
