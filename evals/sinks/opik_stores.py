"""Where sessions are pulled from: a project on Opik's server, or files that were exported from one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from evals.sinks.opik import Connection, NotThere, OpikError
from evals.sinks.opik_pull import Native, Wanted
from replay.errors import ConfigError, NotASession
from replay.readers.common import seconds
from replay.readers.otel_exports import inner_values, is_opik
from replay.readers.source import open_source

_TRACES_A_PAGE = 100
_SPANS_A_PAGE = 500
Page = Callable[[str | None], Iterable[bytes]]


@dataclass(frozen=True)
class Server:
    """A project on Opik's server."""

    of: Connection

    def traces(self, wanted: Wanted) -> Iterator[Native]:
        """The traces that are wanted, the newest first. Raises ConfigError for a filter that cannot be read."""
        if wanted.ids:
            yield from (trace for known in wanted.ids for trace in self._named(known))
        else:
            yield from self._traces(filters(wanted))

    def thread(self, name: str) -> list[Native]:
        """All traces of a thread."""
        return list(self._traces([{"field": "thread_id", "operator": "=", "value": name}]))

    def spans(self, trace: Native) -> list[Native]:
        """All spans of a trace."""
        def page(last: str | None) -> Iterable[bytes]:
            return self.of.rest.spans.search_spans(
                trace_id=str(trace["id"]), project_name=self.of.project, limit=_SPANS_A_PAGE, truncate=False,
                **_after(last))
        return list(self._pages("reading spans", page))

    def _named(self, known: str) -> list[Native]:
        """The trace of this identifier, else the traces of the thread of this name."""
        found = list(self._traces([{"field": "id", "operator": "=", "value": known}])) or self.thread(known)
        if not found:
            raise NotThere(f"{self.of.place}: no trace and no thread {known!r}")
        return found

    def _traces(self, chosen: Sequence[dict[str, str]]) -> Iterator[Native]:
        from opik.rest_api.types.trace_filter_public import TraceFilterPublic

        made: dict[str, Any] = {"filters": [TraceFilterPublic(**one) for one in chosen]} if chosen else {}

        def page(last: str | None) -> Iterable[bytes]:
            return self.of.rest.traces.search_traces(
                project_name=self.of.project, limit=_TRACES_A_PAGE, truncate=False, **made, **_after(last))
        yield from self._pages("reading traces", page)

    def _pages(self, what: str, page: Page) -> Iterator[Native]:
        """The rows of all pages. A page begins behind the last row of the one before: new rows shift nothing."""
        last: str | None = None
        while rows := self.of.call(what, lambda: self._rows(what, page(last))):  # noqa: B023 - called at once
            yield from rows
            last = str(rows[-1]["id"])

    def _rows(self, what: str, pieces: Iterable[bytes]) -> list[Native]:
        lines = [line for line in b"".join(pieces).splitlines() if line.strip()]
        rows = [orjson.loads(line) for line in lines]
        wrong = next((row for row in rows if not isinstance(row, dict) or not row.get("id")), None)
        if wrong is not None:
            raise OpikError(f"{self.of.url}: {what}: the server answered {str(wrong)[:300]}")
        return rows


def _after(last: str | None) -> dict[str, Any]:
    return {"last_retrieved_id": last} if last else {}


def filters(wanted: Wanted) -> list[dict[str, str]]:
    """The filters that the server is asked for. Raises ConfigError."""
    from opik.api_objects.opik_query_language import OpikQueryLanguage

    try:
        found = OpikQueryLanguage.for_traces(wanted.filter).get_filter_expressions() or []
    except ValueError as error:
        raise ConfigError("--filter", "", str(error)) from error
    if wanted.since is not None:
        found = [*found, {"field": "start_time", "operator": ">=", "value": wanted.since.isoformat()}]
    return [{name: str(value) for name, value in one.items() if name in ("field", "operator", "key", "value")}
            for one in found]


@dataclass
class Files:
    """Files that were exported from Opik: lists, pages, lines, or what `opik export` writes."""

    paths: Sequence[Path]
    found: dict[str, Native] = field(default_factory=dict)
    inside: dict[str, dict[str, Native]] = field(default_factory=dict)
    """Spans by trace and identifier; of what several files hold the last counts."""

    def __post_init__(self) -> None:
        """Read the files. Raises ReadError for one that cannot be read or holds nothing of Opik's."""
        for path in self.paths:
            if not self._read(path):
                raise NotASession(str(path), "no traces or spans of Opik in it; export them as JSON")

    def _read(self, path: Path) -> int:
        rows = [row for record in open_source(path).records for value in _opened(record.value)
                for row in inner_values(value) if isinstance(row, dict) and is_opik(row)]
        for row in rows:
            if "trace_id" in row:
                self.inside.setdefault(str(row["trace_id"]), {})[str(row.get("id"))] = row
            else:
                self.found[str(row.get("id"))] = row
        return len(rows)

    def traces(self, wanted: Wanted) -> Iterator[Native]:
        """The traces that are wanted, the newest first; spans without their trace get one that only names it."""
        if wanted.filter:
            raise ConfigError("--filter", "", "needs a server; a file can be searched by --since, --limit and --id")
        rest = [_stand_in(known, spans) for known, spans in self.inside.items() if known not in self.found]
        rows = sorted([*self.found.values(), *rest], key=_time, reverse=True)
        for row in rows:
            is_named = not wanted.ids or {str(row.get("id")), str(row.get("thread_id"))} & set(wanted.ids)
            if is_named and (wanted.since is None or _time(row) >= wanted.since.timestamp()):
                yield row

    def thread(self, name: str) -> list[Native]:
        """All traces of a thread."""
        return [row for row in self.found.values() if str(row.get("thread_id")) == name]

    def spans(self, trace: Native) -> list[Native]:
        """All spans of a trace."""
        return list(self.inside.get(str(trace.get("id")), {}).values())


def _opened(value: Any) -> Iterator[Any]:
    """What `opik export` puts into one object: a trace and its spans."""
    if isinstance(value, dict) and isinstance(value.get("trace"), dict) and isinstance(value.get("spans"), list):
        yield value["trace"]
        yield value["spans"]
    else:
        yield value


def _stand_in(known: str, spans: dict[str, Native]) -> Native:
    begun = min(spans.values(), key=_time).get("start_time")
    return {"id": known, "start_time": begun, "input": None, "output": None}


def _time(row: Native) -> float:
    return seconds(row.get("start_time")) or 0.0
