"""A server on this machine that stands in for Opik's: it keeps what it is sent and refuses what the SDK does not know."""

from __future__ import annotations

import gzip
import inspect
import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from evals.sinks.opik import SWITCHES

Row = dict[str, Any]
KEY = "a-key-that-must-not-be-written-down"


@dataclass
class Fault:
    """Something that goes wrong with the next requests of a kind."""

    pattern: str
    how: str
    """A status (`500`, `429`), `cut` (the server acts, its answer is lost) or `lost` (it does not even act)."""
    after: int = 0
    """Requests of the kind that go well before."""
    times: int = 1


@dataclass
class Kept:
    """What the server holds, by identifier; and what it saw."""

    datasets: dict[str, Row] = field(default_factory=dict)
    items: dict[str, Row] = field(default_factory=dict)
    experiments: dict[str, Row] = field(default_factory=dict)
    traces: dict[str, Row] = field(default_factory=dict)
    spans: dict[str, Row] = field(default_factory=dict)
    scores: dict[tuple[str, str], Row] = field(default_factory=dict)
    entries: dict[str, Row] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    """Method and path, in order."""
    keys: set[str] = field(default_factory=set)
    """What came as authorisation."""
    invalid: list[str] = field(default_factory=list)
    """Requests that the SDK's models do not allow."""
    faults: list[Fault] = field(default_factory=list)
    page: int = 7
    """Most rows of a page, whatever is asked for."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def counts(self) -> dict[str, int]:
        """How much there is of everything."""
        return {name: len(getattr(self, name))
                for name in ("datasets", "items", "experiments", "traces", "spans", "scores", "entries")}

    def fail(self, pattern: str, how: str, after: int = 0, times: int = 1) -> None:
        """Let the next requests of a kind go wrong."""
        self.faults.append(Fault(pattern, how, after, times))

    def fault(self, request: str) -> str | None:
        """What goes wrong with a request."""
        for fault in self.faults:
            if re.search(fault.pattern, request):
                if fault.after:
                    fault.after -= 1
                elif fault.times:
                    fault.times -= 1
                    return fault.how
        return None


@dataclass
class Answer:
    """An answer: status, and JSON or lines of JSON."""

    status: int = 204
    value: Any = None
    lines: list[Row] | None = None

    def bytes(self) -> bytes:
        """The body."""
        if self.lines is not None:
            return b"".join(json.dumps(line).encode() + b"\n" for line in self.lines)
        return b"" if self.value is None else json.dumps(self.value).encode()


Handler = Callable[[Kept, Row, dict[str, str]], Answer]


def _project(value: Row) -> str:
    return str(value.get("project_name"))


def find_dataset(kept: Kept, body: Row, _: dict[str, str]) -> Answer:
    found = [d for d in kept.datasets.values() if d["name"] == body["dataset_name"]]
    return Answer(200, found[0]) if found else Answer(404, {"errors": ["Dataset not found"]})


def make_dataset(kept: Kept, body: Row, _: dict[str, str]) -> Answer:
    if any(d["name"] == body["name"] for d in kept.datasets.values()):
        return Answer(409, {"errors": ["Dataset already exists"]})
    kept.datasets[body["id"]] = {k: body.get(k) for k in ("id", "name", "description")}
    return Answer(201)


def put_items(kept: Kept, body: Row, _: dict[str, str]) -> Answer:
    known = body.get("dataset_id") or next(k for k, d in kept.datasets.items() if d["name"] == body["dataset_name"])
    assert known in kept.datasets
    for item in body["items"]:
        kept.items[item["id"]] = item | {"dataset_id": known}
    return Answer()


def stream_items(kept: Kept, body: Row, _: dict[str, str]) -> Answer:
    known = [k for k, d in kept.datasets.items() if d["name"] == body["dataset_name"]]
    return Answer(200, lines=_page(kept, [i for i in kept.items.values() if i["dataset_id"] in known], body))


def get_dataset(kept: Kept, _: Row, path: dict[str, str]) -> Answer:
    inside = [i for i in kept.items.values() if i["dataset_id"] == path["id"]]
    return Answer(200, kept.datasets[path["id"]] | {"dataset_items_count": len(inside)})


def no_versions(*_: Any) -> Answer:
    return Answer(200, {"page": 1, "size": 0, "total": 0, "content": []})


def find_experiments(kept: Kept, query: Row, _: dict[str, str]) -> Answer:
    found = [e for e in kept.experiments.values() if e["dataset_id"] == query["dataset_id"]]
    start = (int(query["page"]) - 1) * int(query["size"])
    return Answer(200, {"page": int(query["page"]), "size": len(found), "total": len(found),
                        "content": found[start:start + int(query["size"])]})


def make_experiment(kept: Kept, body: Row, _: dict[str, str]) -> Answer:
    if body["id"] in kept.experiments:
        return Answer(409, {"errors": ["Experiment already exists"]})
    dataset = next(k for k, d in kept.datasets.items() if d["name"] == body["dataset_name"])
    kept.experiments[body["id"]] = body | {"dataset_id": dataset}
    return Answer(201)


def change_experiment(kept: Kept, body: Row, path: dict[str, str]) -> Answer:
    if path["id"] not in kept.experiments:
        return Answer(404, {"errors": ["Experiment not found"]})
    kept.experiments[path["id"]] |= body
    return Answer()


def finish_experiments(kept: Kept, body: Row, _: dict[str, str]) -> Answer:
    for known in body["ids"]:
        kept.experiments[known]["finished"] = True
    return Answer()


def get_experiment(kept: Kept, _: Row, path: dict[str, str]) -> Answer:
    found = kept.experiments.get(path["id"])
    return Answer(200, found) if found else Answer(404, {"errors": ["Experiment not found"]})


def put_entries(kept: Kept, body: Row, _: dict[str, str]) -> Answer:
    for entry in body["experiment_items"]:
        assert entry["experiment_id"] in kept.experiments
        assert entry["dataset_item_id"] in kept.items
        kept.entries[entry["id"]] = entry
    return Answer()


def put_traces(kept: Kept, body: Row, _: dict[str, str]) -> Answer:
    for trace in body["traces"]:
        kept.traces[trace["id"]] = trace
    return Answer()


def put_spans(kept: Kept, body: Row, _: dict[str, str]) -> Answer:
    for span in body["spans"]:
        kept.spans[span["id"]] = span
    return Answer()


def put_scores(kept: Kept, body: Row, _: dict[str, str]) -> Answer:
    for score in body["scores"]:
        kept.scores[score["id"], score["name"]] = score
    return Answer()


def search_traces(kept: Kept, body: Row, _: dict[str, str]) -> Answer:
    found = [t for t in kept.traces.values() if _project(t) == _project(body)]
    for one in body.get("filters") or []:
        found = [t for t in found if _matches(t, one)]
    return Answer(200, lines=[_public(t) for t in _page(kept, found, body)])


def search_spans(kept: Kept, body: Row, _: dict[str, str]) -> Answer:
    found = [s for s in kept.spans.values() if s["trace_id"] == body["trace_id"]]
    return Answer(200, lines=[_public(s) for s in _page(kept, found, body)])


def _matches(trace: Row, one: Row) -> bool:
    if one["field"] == "tags":
        return one["value"] in (trace.get("tags") or [])
    if one["operator"] == ">=":
        return str(trace[one["field"]]) >= one["value"].replace("+00:00", "Z")
    return trace.get(one["field"]) == one["value"]


def _public(row: Row) -> Row:
    return {k: v for k, v in row.items() if k != "project_name"} | {"created_by": "somebody"}


def _page(kept: Kept, rows: list[Row], body: Row) -> list[Row]:
    """The rows behind the last one that was retrieved, the newest identifier first."""
    last = body.get("last_retrieved_id")
    rest = sorted((r for r in rows if last is None or r["id"] < last), key=lambda r: str(r["id"]), reverse=True)
    asked = body.get("limit") or body.get("steam_limit") or kept.page
    return rest[:min(int(asked), kept.page)]


BESIDE = {"GET is-alive/ping": Answer(200, {"healthy": True}),
          "GET auth/workspace": Answer(200, {"workspaceName": "default"})}
"""What the SDK asks without its generated client."""
ROUTES: list[tuple[str, str, str, Handler]] = [
    ("POST", "datasets/retrieve", "datasets.get_dataset_by_identifier", find_dataset),
    ("POST", "datasets", "datasets.create_dataset", make_dataset),
    ("PUT", "datasets/items", "datasets.create_or_update_dataset_items", put_items),
    ("POST", "datasets/items/stream", "datasets.stream_dataset_items", stream_items),
    ("GET", "datasets/(?P<id>[^/]+)", "datasets.get_dataset_by_id", get_dataset),
    ("GET", "datasets/(?P<id>[^/]+)/versions", "datasets.list_dataset_versions", no_versions),
    ("GET", "experiments", "experiments.find_experiments", find_experiments),
    ("POST", "experiments", "experiments.create_experiment", make_experiment),
    ("POST", "experiments/finish", "experiments.finish_experiments", finish_experiments),
    ("POST", "experiments/items", "experiments.create_experiment_items", put_entries),
    ("PATCH", "experiments/(?P<id>[^/]+)", "experiments.update_experiment", change_experiment),
    ("GET", "experiments/(?P<id>[^/]+)", "experiments.get_experiment_by_id", get_experiment),
    ("POST", "traces/batch", "traces.create_traces", put_traces),
    ("POST", "spans/batch", "spans.create_spans", put_spans),
    ("PUT", "traces/feedback-scores", "traces.score_batch_of_traces", put_scores),
    ("POST", "traces/search", "traces.search_traces", search_traces),
    ("POST", "spans/search", "spans.search_spans", search_spans),
]
"""Method, path, the SDK's call whose arguments a request may hold, and what it does."""


def problems(call: str, given: Row) -> list[str]:
    """What of a request the SDK's own models do not allow: unknown, missing or wrong fields, at any depth."""
    import importlib

    import pydantic

    group, name = call.split(".")
    module = importlib.import_module(f"opik.rest_api.{group}.raw_client")
    function = getattr(getattr(module, f"Raw{group.capitalize()}Client"), name)
    arguments = [p for p in inspect.signature(function, eval_str=True).parameters.values()
                 if p.kind is p.KEYWORD_ONLY and p.name != "request_options"]
    fields: Any = {p.name: (p.annotation, ... if p.default is p.empty else None) for p in arguments}
    model = pydantic.create_model("Request", __config__=pydantic.ConfigDict(extra="forbid"), **fields)
    try:
        return list(_unknown(model.model_validate(given), ""))
    except pydantic.ValidationError as error:
        return [f"{e['loc']}: {e['msg']}" for e in error.errors()]


def _unknown(value: Any, where: str) -> Iterator[str]:
    import pydantic

    if isinstance(value, pydantic.BaseModel):
        yield from (f"{where}.{name}: unknown" for name in value.model_extra or ())
        for name in type(value).model_fields:
            yield from _unknown(getattr(value, name), f"{where}.{name}")
    elif isinstance(value, (list, tuple)):
        for number, inner in enumerate(value):
            yield from _unknown(inner, f"{where}[{number}]")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    kept: Kept

    def log_message(self, *_: Any) -> None:
        """Nothing on the terminal."""

    def _serve(self) -> None:
        split = urlsplit(self.path)
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = gzip.decompress(raw) if self.headers.get("Content-Encoding") == "gzip" else raw
        query = {re.sub("([A-Z])", r"_\1", name).lower(): values[-1] for name, values in parse_qs(split.query).items()}
        request = f"{self.command} {split.path.removeprefix('/api/').removeprefix('v1/private/')}"
        with self.kept.lock:
            self.kept.requests.append(request)
            self.kept.keys.add(str(self.headers.get("Authorization")))
            fault = self.kept.fault(request)
            if fault == "lost":
                self.close_connection = True
                return
            answer = _fault_answer(fault) or self._answer(request, json.loads(body) if body else query)
        if fault == "cut":
            self.close_connection = True
            return
        self._send(answer, {"RateLimit-Reset": "0.01"} if fault == "429" else {})

    def _answer(self, request: str, given: Row) -> Answer:
        if request in BESIDE:
            return BESIDE[request]
        for method, pattern, call, handler in ROUTES:
            found = re.fullmatch(f"{method} {pattern}", request)
            if found:
                wrong = problems(call, given)
                self.kept.invalid += [f"{request} {w}" for w in wrong]
                return Answer(400, {"errors": wrong}) if wrong else handler(self.kept, given, found.groupdict())
        self.kept.invalid.append(f"{request}: no such endpoint")
        return Answer(501, {"errors": [f"{request} is not served here"]})

    def _send(self, answer: Answer, headers: dict[str, str]) -> None:
        data = answer.bytes()
        self.send_response(answer.status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_PATCH = _serve  # noqa: N815 - the names that the standard library calls


def _fault_answer(fault: str | None) -> Answer | None:
    return Answer(int(fault), {"message": "on demand"}) if fault and fault.isdigit() else None


@pytest.fixture
def opik_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Kept]:
    """A running server which Opik's configuration names, with a key, and quick second attempts."""
    handler = type("Handler", (_Handler,), {"kept": Kept()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    home = tmp_path / "home"
    home.mkdir()
    (home / ".opik.config").write_text(f"[opik]\nurl_override = http://127.0.0.1:{server.server_port}/api/\n"
                                       f"api_key = {KEY}\n")
    for name in SWITCHES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)  # the SDK hands it to httpx in a form that warns
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("OPIK_PROJECT_NAME", "agents")
    monkeypatch.setattr("evals.sinks.opik.FIRST_WAIT_SECONDS", 0.005)
    yield handler.kept  # type: ignore[attr-defined]
    server.shutdown()
    server.server_close()
    thread.join()
