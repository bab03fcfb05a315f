"""Sending a parcel: identifiers that stay the same, so a push repeated updates, and a broken one goes on."""

from __future__ import annotations

import contextlib
import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evals.sinks.opik import Connection, NotThere
from evals.sinks.opik_ids import is_same, made_id, milliseconds_of
from evals.sinks.opik_parcel import Parcel, moment
from evals.sinks.opik_rows import Row
from replay.writers.json_lines import json_bytes

MOST_ROWS = 500
MOST_BYTES = 3_500_000
"""Of one request; Opik takes four megabytes and a thousand rows."""
_PAGE = 100
_ORDER = ("item", "trace", "span", "score", "entry")
"""What refers to something is sent after it."""


@dataclass
class Journal:
    """What the server has taken already, in a file beside the run while a push is not finished."""

    path: Path
    taken: set[str] = field(default_factory=set)

    @classmethod
    def beside(cls, run: Path) -> Journal:
        """The journal of a run, with what an earlier push that broke off has left."""
        path = run.absolute().with_name(f".{run.absolute().name}.opik-sent")
        return cls(path, set(path.read_text(encoding="utf-8").split()) if path.is_file() else set())

    def add(self, digest: str) -> None:
        """Note that a request was taken; where no file can be written the push only cannot skip it next time."""
        self.taken.add(digest)
        with contextlib.suppress(OSError), self.path.open("a", encoding="utf-8") as file:
            file.write(digest + "\n")

    def forget(self) -> None:
        """Start anew, or end."""
        self.taken.clear()
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)


def push(parcel: Parcel, connection: Connection, sent: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Send a parcel and say what stands where. Raises OpikError; sent again it goes on where it stopped."""
    journal = Journal.beside(parcel.run.folder)
    sender = _Sender(parcel, connection, journal, sent)
    sender.dataset()
    sender.send()
    sender.finish()
    journal.forget()
    return {"dataset": parcel.run.dataset_name, "cohort": parcel.run.cohort,
            "experiments": [{"name": row["name"], "id": known} for row, known in sender.experiments.values()],
            "sent": dict(sender.counts), "requests": sender.requests, "sent_before": sender.skipped}


@dataclass
class _Sender:
    parcel: Parcel
    to: Connection
    journal: Journal
    sent: Callable[[str], None]
    counts: Counter[str] = field(default_factory=Counter)
    requests: int = 0
    skipped: int = 0
    experiments: dict[bytes, tuple[Row, str]] = field(default_factory=dict)
    """Rows and identifiers of the experiments, by key."""
    _dataset_id: str = ""
    _there: Sequence[str] = ()
    """Identifiers of the dataset's experiments."""
    _waiting: list[tuple[str, Row]] = field(default_factory=list)
    _waiting_bytes: int = 0

    def dataset(self) -> None:
        """Find the dataset or make it."""
        run = self.parcel.run
        try:
            self._dataset_id = self._find_dataset()
        except NotThere:
            self.journal.forget()
            own = made_id(run.made_at, "dataset", run.dataset_name)
            self.to.make("making the dataset", lambda: self.to.rest.datasets.create_dataset(
                name=run.dataset_name, id=own, project_name=self.to.project,
                description=f"{len(run.summary['sessions'])} sessions that Rewindow replays; version {run.cohort}"))
            self._dataset_id = self._find_dataset()
        self._there = list(self._known_experiments())

    def _find_dataset(self) -> str:
        found = self.to.call("looking for the dataset", lambda: self.to.rest.datasets.get_dataset_by_identifier(
            dataset_name=self.parcel.run.dataset_name, project_name=self.to.project))
        return str(found.id)

    def _known_experiments(self) -> list[str]:
        found: list[str] = []
        while listed := self._experiments_page(len(found) // _PAGE + 1):
            found += listed
            if len(listed) < _PAGE:
                break
        return found

    def _experiments_page(self, page: int) -> list[str]:
        answer = self.to.call("looking for experiments", lambda: self.to.rest.experiments.find_experiments(
            dataset_id=self._dataset_id, page=page, size=_PAGE))
        return [str(e.id) for e in answer.content or ()]

    def send(self) -> None:
        """Send the rows in batches."""
        for line in self.parcel.rows():
            kind, key, row = line["kind"], line["key"], line["row"]
            self.counts[kind] += 1
            if kind == "experiment":
                self._experiment(key, row)
                continue
            made = _ADDRESSED[kind](self, line, key) | row
            if kind in ("trace", "span") and "start_time" not in made:
                made |= moment(made["id"])
            self._waiting.append((kind, made))
            self._waiting_bytes += len(json_bytes(made))
            if len(self._waiting) >= MOST_ROWS or self._waiting_bytes >= MOST_BYTES:
                self._flush()
        self._flush()

    def _experiment(self, key: Any, row: Row) -> None:
        known = next((e for e in self._there if is_same(e, made_id(0, *key))), None)
        if known is None:
            self.journal.forget()
            own = made_id(self.parcel.run.made_at, *key)
            self.to.make("making an experiment", lambda: self.to.rest.experiments.create_experiment(
                id=own, dataset_name=self.parcel.run.dataset_name, project_name=self.to.project, name=row["name"],
                metadata=row["metadata"], tags=row["tags"], type="regular", status="running"))
        else:
            self.to.call("updating an experiment", lambda: self.to.rest.experiments.update_experiment(
                known, metadata=row["metadata"], status="running"))
        self.experiments[_name(key)] = row, known or made_id(self.parcel.run.made_at, *key)

    def finish(self) -> None:
        """Say that the experiments are complete."""
        made = [known for _, known in self.experiments.values()]
        for known in made:
            self._status(known, "completed")
        with contextlib.suppress(NotThere):  # older servers have no such call
            self.to.call("finishing the experiments",
                         lambda: self.to.rest.experiments.finish_experiments(ids=made))

    def _status(self, known: str, status: str) -> None:
        self.to.call("finishing an experiment",
                     lambda: self.to.rest.experiments.update_experiment(known, status=status))

    def _flush(self) -> None:
        for kind in _ORDER:
            for rows in _batches([row for k, row in self._waiting if k == kind]):
                self._request(kind, rows)
        self._waiting, self._waiting_bytes = [], 0

    def _request(self, kind: str, rows: Sequence[Row]) -> None:
        place = [self.to.url, self.to.workspace, self.to.project, self._dataset_id, kind]
        known = hashlib.sha256(json_bytes([place, rows])).hexdigest()
        if known in self.journal.taken:
            self.skipped += 1
        else:
            self.to.call(f"sending {kind} rows", lambda: _SENT[kind](self, rows))
            self.journal.add(known)
            self.requests += 1
        self.sent(kind)

    def _stamp(self, line: Mapping[str, Any]) -> int:
        """The time in the identifiers of what belongs to an experiment, or to none."""
        of = line["of"]
        return milliseconds_of(self._dataset_id if of is None else self.experiments[_name(of)][1])

    def item(self, line: Mapping[str, Any], key: Any) -> Row:
        """Where an item of the dataset stands."""
        return {"id": made_id(milliseconds_of(self._dataset_id), *key)}

    def trace(self, line: Mapping[str, Any], key: Any) -> Row:
        """Where a trace, or a score of it, stands."""
        return {"id": made_id(self._stamp(line), *key), "project_name": self.to.project}

    def span(self, line: Mapping[str, Any], key: Any) -> Row:
        """Where a span stands."""
        stamp = self._stamp(line)
        return {"id": made_id(stamp, *key), "trace_id": made_id(stamp, *line["trace"]), "project_name": self.to.project,
                "source": "experiment" if line["of"] else "sdk"}

    def entry(self, line: Mapping[str, Any], key: Any) -> Row:
        """An item of an experiment: which session's item, and which trace."""
        stamp = self._stamp(line)
        return {"id": made_id(stamp, *key), "experiment_id": self.experiments[_name(line["of"])][1],
                "dataset_item_id": made_id(milliseconds_of(self._dataset_id), *line["item"]),
                "trace_id": made_id(stamp, *line["trace"])}

    def send_items(self, rows: Sequence[Row]) -> None:
        """Items of the dataset."""
        from opik.rest_api.types.dataset_item_write import DatasetItemWrite

        self.to.rest.datasets.create_or_update_dataset_items(
            items=[DatasetItemWrite(**row) for row in rows], dataset_id=self._dataset_id)

    def send_traces(self, rows: Sequence[Row]) -> None:
        """Traces."""
        from opik.rest_api.types.trace_write import TraceWrite

        self.to.rest.traces.create_traces(traces=[TraceWrite(**row) for row in rows])

    def send_spans(self, rows: Sequence[Row]) -> None:
        """Spans."""
        from opik.rest_api.types.span_write import SpanWrite

        self.to.rest.spans.create_spans(spans=[SpanWrite(**row) for row in rows])

    def send_scores(self, rows: Sequence[Row]) -> None:
        """Feedback scores of traces."""
        from opik.rest_api.types.feedback_score_batch_item import FeedbackScoreBatchItem

        self.to.rest.traces.score_batch_of_traces(scores=[FeedbackScoreBatchItem(**row) for row in rows])

    def send_entries(self, rows: Sequence[Row]) -> None:
        """Items of experiments."""
        from opik.rest_api.types.experiment_item import ExperimentItem

        self.to.rest.experiments.create_experiment_items(experiment_items=[ExperimentItem(**row) for row in rows])


_ADDRESSED: Mapping[str, Callable[[_Sender, Mapping[str, Any], Any], Row]] = {
    "item": _Sender.item, "trace": _Sender.trace, "score": _Sender.trace, "span": _Sender.span, "entry": _Sender.entry}
_SENT: Mapping[str, Callable[[_Sender, Sequence[Row]], None]] = {
    "item": _Sender.send_items, "trace": _Sender.send_traces, "span": _Sender.send_spans,
    "score": _Sender.send_scores, "entry": _Sender.send_entries}


def _name(key: Any) -> bytes:
    return json_bytes(key)


def _batches(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows of one request each."""
    found: list[list[Row]] = []
    size = 0
    for row in rows:
        own = len(json_bytes(row))
        if not found or size + own > MOST_BYTES or len(found[-1]) >= MOST_ROWS:
            found.append([])
            size = 0
        found[-1].append(row)
        size += own
    return found
