"""A scripted OpenAI-compatible endpoint over real HTTP that misbehaves on demand."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from evals.model.config import Models

Answer = str | dict[str, Any] | None
"""A text; `calls` (pairs of a tool's name and its arguments); or a misbehaviour: status, raw, delay, cut, refusal, finish,
usage, logprobs; None: the script's default."""


@dataclass
class Scripted:
    """The endpoint: `script` holds answers for the next requests, then `default` answers every one."""

    url: str = ""
    script: list[Answer] = field(default_factory=list)
    default: Callable[[dict[str, Any]], Answer] = lambda body: "All right."
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    most_at_once: int = 0
    billed: tuple[int, int] = (100, 20)
    _running: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> dict[str, Any]:
        with self._lock:
            self.requests.append({"path": path, **body})
            self.headers.append(headers)
            self._running += 1
            self.most_at_once = max(self.most_at_once, self._running)
            answer = self.script.pop(0) if self.script else None
        answer = self.default(body) if answer is None else answer
        return {"text": answer} if isinstance(answer, str) else answer or {"text": ""}

    def left(self) -> None:
        with self._lock:
            self._running -= 1


def _usage(server: Scripted, answer: dict[str, Any], names: tuple[str, str]) -> dict[str, int] | None:
    billed = answer.get("usage", server.billed)
    return None if billed is None else {names[0]: billed[0], names[1]: billed[1], "total_tokens": sum(billed)}


def _chat(server: Scripted, answer: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.get("text"), "refusal": answer.get("refusal")}
    if answer.get("calls"):
        message["tool_calls"] = [
            {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
            for n, (name, given) in enumerate(answer["calls"])]
    return {"id": "c1", "object": "chat.completion", "created": 1, "model": body["model"],
            "usage": _usage(server, answer, ("prompt_tokens", "completion_tokens")),
            "choices": [{"index": 0, "message": message, "finish_reason": answer.get("finish", "stop")}]}


def _responses(server: Scripted, answer: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    part = ({"type": "refusal", "refusal": answer["refusal"]} if "refusal" in answer
            else {"type": "output_text", "text": answer.get("text") or "", "annotations": []})
    cut = answer.get("finish") == "length"
    return {"id": "r1", "object": "response", "created_at": 1, "model": body["model"], "parallel_tool_calls": True,
            "tool_choice": "auto", "tools": [], "status": "incomplete" if cut else "completed",
            "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "usage": _usage(server, answer, ("input_tokens", "output_tokens")),
            "output": [{"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [part]}]}


def _completions(server: Scripted, answer: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    prompt = body["prompt"]
    offsets = list(range(0, len(prompt), 4))
    found = {"tokens": [prompt[o:o + 4] for o in offsets], "text_offset": offsets,
             "token_logprobs": [None] + [answer.get("logprob", -1.0)] * (len(offsets) - 1)}
    return {"id": "t1", "object": "text_completion", "created": 1, "model": body["model"],
            "usage": _usage(server, answer, ("prompt_tokens", "completion_tokens")),
            "choices": [{"index": 0, "text": prompt, "finish_reason": "length",
                         "logprobs": None if answer.get("logprobs") is False else found}]}


_SHAPES = {"/v1/chat/completions": _chat, "/v1/responses": _responses, "/v1/completions": _completions}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: Scripted

    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = self.owner.take(self.path, body, dict(self.headers))
        try:
            time.sleep(answer.get("delay", 0))
            self._answer(answer, body)
        except OSError:
            self.close_connection = True
        finally:
            self.owner.left()

    def _answer(self, answer: dict[str, Any], body: dict[str, Any]) -> None:
        if "status" in answer:
            error = {"message": answer.get("message", "no"), "code": answer.get("code")}
            self._send(json.dumps({"error": error}).encode(), answer["status"], answer.get("headers", {}))
        elif "raw" in answer:
            self._send(answer["raw"].encode(), 200, {})
        elif body.get("stream") and self.path.endswith("chat/completions"):
            self._stream(answer, body)
        else:
            raw = json.dumps(_SHAPES[self.path](self.owner, answer, body)).encode()
            self._send(raw, 200, {}, answer.get("cut", False))

    def _send(self, raw: bytes, status: int, headers: dict[str, str], cut: bool = False) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(raw)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(raw[:len(raw) // 2] if cut else raw)
        if cut:
            self.close_connection = True

    def _stream(self, answer: dict[str, Any], body: dict[str, Any]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        base = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}
        text = answer.get("text") or ""
        deltas: list[dict[str, Any]] = [{"delta": {"content": piece}} for piece in (text[:3], text[3:])]
        if not answer.get("cut"):
            deltas.append({"delta": {}, "finish_reason": answer.get("finish", "stop")})
        for delta in deltas:
            self._event({**base, "choices": [{"index": 0, "finish_reason": None, **delta}]})
        if not answer.get("cut"):
            usage = _usage(self.owner, answer, ("prompt_tokens", "completion_tokens"))
            self._event({**base, "choices": [], "usage": usage})
            self.wfile.write(b"data: [DONE]\n\n")

    def _event(self, value: dict[str, Any]) -> None:
        self.wfile.write(f"data: {json.dumps(value)}\n\n".encode())


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_: Any) -> None:
        """A client that hung up is part of the script."""


@pytest.fixture
def endpoint() -> Iterator[Scripted]:
    """A running scripted endpoint."""
    made = Scripted()
    handler = type("Handler", (_Handler,), {"owner": made})
    server = _Server(("127.0.0.1", 0), handler)
    made.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield made
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def models(endpoint: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Models:
    """Settings for the endpoint, with a key that must turn up nowhere and prices of one and two dollars a million."""
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-5f2c9d81e7")
    return Models(base_url=endpoint.url, answerer="tiny", summariser="tiny", judge="tiny", cache=tmp_path / "answers",
                  backoff=0.001, timeout=5.0, price_input=1.0, price_output=2.0)
