"""What the pytest plugin does, without pytest: sessions, replays, and their comparison with golden views."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from evals.gate.check import Failure, check
from evals.gate.gate import Call, Verdict, comparable_tiers, gate, gate_settings, require_same
from evals.gate.golden import accept_one, golden_name, load, parse
from evals.gate.record import Record, Tier, record, recording_digest
from evals.gate.versions import changed
from evals.metrics.base import Trial
from evals.trial import Settings
from replay.copies import without_copies
from replay.engine import DEFAULT_WINDOW, Lane, Session, View
from replay.errors import ConfigError, NotASession
from replay.find import find, read_found
from replay.policy.base import Capacity
from replay.policy.load import policy as load_policy
from replay.policy.policy import Policy
from replay.readers import read
from replay.tokens import TokenCounter, tokenizer
from replay.view import Shape, render

EXACT: tuple[Tier, ...] = ("views", "counts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a test's mark says."""

    sessions: tuple[str, ...]
    """Files, folders or patterns."""
    policy: str | Policy = "recorded"
    window: int = DEFAULT_WINDOW
    output_reserve: int = 0
    summariser: str = "extractive"
    tokenizer: str = "o200k_base"
    reader: str | None = None

    @property
    def made(self) -> Policy:
        """The policy itself. Raises ConfigError or UnknownName."""
        return load_policy(self.policy) if isinstance(self.policy, str) else self.policy

    def call(self, **more: Any) -> Call:
        """The gate's call for all sessions."""
        files, remarks = without_copies(find(self.sessions), self.reader)
        capacity = Capacity(window=self.window, output_reserve=self.output_reserve)
        settings = Settings(capacity=capacity, tokenizer=self.tokenizer, summariser=self.summariser, rows=False,
                            losses=True, reader=self.reader)
        return Call(files=files, policy=self.made, settings=settings, jobs=1, remarks=sorted(remarks),
                    policy_name=self.policy if isinstance(self.policy, str) else self.policy.name, **more)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a session is: its file, and which of that file's."""

    path: str
    position: int
    session: str

    def __str__(self) -> str:
        return f"{Path(self.path).name}-{self.session}"


def places(setup: Setup) -> Iterator[Place]:
    """Every session of the setup, in the order of the files. Raises ReadError for a named file that is none."""
    for found in setup.call().files:
        try:
            transcripts = read_found(found, setup.reader)
        except NotASession:
            if found.named:
                raise
            continue
        yield from (Place(str(found.path), n, t.session_id) for n, t in enumerate(transcripts))


@lru_cache(maxsize=8)
def _session(place: Place, tokenizer_name: str, reader: str | None) -> Session:
    return Session(read(place.path, reader)[place.position], TokenCounter(tokenizer(tokenizer_name)))


class Views(Sequence[list[dict[str, Any]]]):
    """The messages of every step, rendered when asked for; the first step is at 0."""

    def __init__(self, session: Session, lane: Lane, shape: Shape = "openai") -> None:
        self._session, self._lane, self._shape = session, lane, shape

    def __len__(self) -> int:
        return len(self._lane.views)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[n] for n in range(*place.indices(len(self)))]
        return render(self._session.log, self._lane.views[place].window, self._shape)


class Replay:
    """One session under the policy of the test's mark."""

    def __init__(self, setup: Setup, place: Place) -> None:
        """Nothing is read or replayed before it is asked for."""
        self.setup, self.place = setup, place

    @cached_property
    def session(self) -> Session:
        """The session, prepared."""
        return _session(self.place, self.setup.tokenizer, self.setup.reader)

    @cached_property
    def lane(self) -> Lane:
        """The policy's replay of it."""
        capacity = Capacity(window=self.setup.window, output_reserve=self.setup.output_reserve)
        return self.session.replay(self.setup.made, capacity, self.setup.summariser)

    @property
    def views(self) -> tuple[View, ...]:
        """One view a step, with its events and numbers."""
        return self.lane.views

    def messages(self, step: int, shape: Shape = "openai") -> list[dict[str, Any]]:
        """The messages of a step, from 1, as `openai`, `anthropic` or `text`. Raises ConfigError."""
        if not 1 <= step <= len(self.views):
            raise ConfigError("step", str(step), f"the session has {len(self.views)} steps")
        return render(self.session.log, self.views[step - 1].window, shape)

    def record(self, tiers: Sequence[Tier] = EXACT) -> Record:
        """What a golden folder keeps of it."""
        capacity = Capacity(window=self.setup.window, output_reserve=self.setup.output_reserve)
        return record(Trial(session=self.session, lane=self.lane, capacity=capacity), tiers)

    def accept(self, folder: Path, reason: str | None) -> bool:
        """Make the folder's golden of this session what it is now; whether that changed it."""
        return accept_one(folder, self.record(), gate_settings(self.setup.call(tiers=EXACT)), reason)

    def differences(self, folder: Path) -> list[Failure]:
        """What differs from the golden; raises ConfigError where there is none, or one for another window."""
        golden = load(folder)
        path = folder / "sessions" / golden_name(self.place.session, recording_digest(self.session))
        if golden is None or not path.is_file():
            raise ConfigError(str(folder), self.place.session, "no golden views there yet; run once with "
                                                               "--rewindow-accept")
        settings = gate_settings(self.setup.call(tiers=EXACT))
        require_same(golden, settings)
        tiers = comparable_tiers(EXACT, changed(golden.settings["versions"], settings["versions"]))
        return check(self.session.log, self.record(), parse(path.read_text(encoding="utf-8"), str(path)),
                     self.place.path, tiers)


def no_regression(setup: Setup, baseline: str | Policy | Path, margins: Mapping[str, float]) -> Verdict:
    """The tier with tolerances over all sessions, against another policy or a golden folder of `rewindow gate`."""
    named = [f"{name}={size}" for name, size in margins.items()]
    if isinstance(baseline, Path):
        return gate(setup.call(golden=baseline, tiers=("tolerance",), margins=named))
    other = load_policy(baseline) if isinstance(baseline, str) else baseline
    return gate(setup.call(baseline=other, baseline_name=other.name, tiers=("tolerance",), margins=named))
