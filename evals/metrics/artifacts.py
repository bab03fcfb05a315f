"""Does the view still name the files that the agent changed and read (B8)? Names only: content is another question."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from evals.mentions import visible_share
from evals.metrics.base import Measurement, Trial, missing
from evals.watchlist import Watchlist, watchlist


@dataclass(frozen=True)
class ArtifactTrail:
    """Files changed (the headline) and read whose path is visible ÷ all so far, mean over the steps that have some."""

    name: str = "artifact-trail"

    def measure(self, trial: Trial) -> Iterable[Measurement]:
        """Recall over all steps and at the last one, for changed and for read files, with their numbers."""
        found = watchlist(trial.session)
        return found.once(trial.lane, self.name, lambda: _measured(trial, found))


def _measured(trial: Trial, found: Watchlist) -> list[Measurement]:
    return [m for section in ("modified", "read") for m in _recall(trial, found, section)]


def _recall(trial: Trial, found: Watchlist, section: str) -> Iterator[Measurement]:
    where, names = found.sections[section], (f"artifact_recall_{section}", f"artifact_recall_{section}_last")
    yield Measurement(name=f"artifacts_{section}", value=len(where.asked))
    asked = found.asked(section)
    seen = found.pieces(trial.lane, section).per_view(found.views)
    share = visible_share(seen, asked)
    if share is None:
        yield from (missing(n, f"no file was {section} before a step") for n in names)
        return
    yield Measurement(name=names[0], value=share)
    yield Measurement(name=names[1], value=float(seen[-1] / asked[-1]))


def lost_files(trial: Trial, section: str = "modified") -> list[str]:
    """Paths of the files that the last view no longer names, in the order of first use."""
    found = watchlist(trial.session)
    pieces = found.pieces(trial.lane, section)
    kept = set(pieces.phrase[pieces.stop == found.views].tolist())
    files = found.modified if section == "modified" else found.read
    asked = found.sections[section].asked
    return [f.paths[-1] for n, f in enumerate(files) if n not in kept and asked[n][0] < found.views]
