"""A program in any language as a policy: JSON lines on its standard input and output, protocol version 1."""

from __future__ import annotations

import atexit
import shlex
import subprocess
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from queue import Empty, Queue
from typing import Any, BinaryIO

import orjson

from replay.errors import ConfigError
from replay.own.base import Edit, Native, NativeShape, OwnCodeError, Turn

PROTOCOL = 1
_TOLD = 5
"""Last lines of the program's standard error that an error repeats."""
_PIPES: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
_TOLD_OF_STEP = ("step", "window", "tokens", "refused")
_RUNNING: dict[tuple[tuple[str, ...], float], Child] = {}
"""Programs that this process has started: one serves all its sessions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildProcess:
    """Runs a program, without a shell, and asks it at every step; it is started once in each worker process."""

    command: str
    """Its words, split as a shell would."""
    shape: NativeShape = "openai"
    persists: bool = True
    """What it gives is the history from then on (False: every step it is given the full history)."""
    timeout: float = 60.0
    """Seconds that an answer may take."""

    @contextmanager
    def session(self, name: str) -> Iterator[Edit]:
        """The program, at the beginning of a session. Raises ConfigError and OwnCodeError."""
        child = self._running()
        child.tell({"type": "session", "session": name, "shape": self.shape, "persists": self.persists})
        yield lambda turn: self._step(child, turn)

    def _running(self) -> Child:
        key = (tuple(self.words()), self.timeout)
        if key not in _RUNNING or not _RUNNING[key].alive:
            _RUNNING[key] = Child(*key)
        return _RUNNING[key]

    def words(self) -> list[str]:
        """The program and its arguments. Raises ConfigError."""
        try:
            words = shlex.split(self.command)
        except ValueError as error:
            raise ConfigError(self.command, "", f"cannot be split into words: {error}") from error
        if not words:
            raise ConfigError("command:", "", "names no program")
        return words

    def _step(self, child: Child, turn: Turn) -> list[Native]:
        step = turn.state["step"]
        told = {name: turn.state[name] for name in _TOLD_OF_STEP if name in turn.state}
        answer = child.ask({"type": "step", **told, "messages": turn.messages}, step)
        if not isinstance(answer, dict) or "error" in answer:
            said = answer.get("error") if isinstance(answer, dict) else answer
            raise OwnCodeError(f"{self.command}: step {step}: answered {str(said)[:500]!r}")
        found: list[Native] = answer.get("messages", [])
        return found


class Child:
    """A running program. Three threads move bytes, so that neither side ever waits for the other to read."""

    def __init__(self, words: tuple[str, ...], timeout: float) -> None:
        """Start it and agree on the protocol. Raises ConfigError where it cannot be started."""
        self._name, self._timeout = shlex.join(words), timeout
        try:
            self._process = subprocess.Popen(words, **_PIPES)  # noqa: S603 - what the user named, without a shell
        except OSError as error:
            raise ConfigError(f"command:{self._name}", "", f"cannot be started: {error.strerror or error}") from error
        self._to_send: Queue[bytes | None] = Queue()
        self._answers: Queue[bytes] = Queue()
        self._errors: deque[str] = deque(maxlen=_TOLD)
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._send, self._receive, self._hear)]
        for thread in self._threads:
            thread.start()
        atexit.register(self.close)
        hello = self.ask({"type": "hello", "protocol": PROTOCOL}, 0)
        if not isinstance(hello, dict) or hello.get("protocol") != PROTOCOL:
            self.close()
            raise OwnCodeError(f"{self._name}: answered {str(hello)[:200]!r} to hello, not protocol {PROTOCOL}")

    @property
    def alive(self) -> bool:
        """It runs."""
        return self._process.poll() is None

    def tell(self, value: dict[str, Any]) -> None:
        """Send a line that is not answered."""
        self._to_send.put(orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS) + b"\n")

    def ask(self, value: dict[str, Any], step: int) -> Any:
        """Send a line and wait for its answer. Raises OwnCodeError where none comes in time or it is no JSON."""
        self._refuse_unasked(step)
        self.tell(value)
        try:
            line = self._answers.get(timeout=self._timeout)
        except Empty:
            self.close()
            late = f"no answer within {self._timeout:g} s"
            raise OwnCodeError(f"{self._name}: step {step}: {late}{self._said()}") from None
        if not line:
            code = self._process.wait()
            self.close()
            raise OwnCodeError(f"{self._name}: step {step}: it ended with code {code}{self._said()}")
        try:
            return orjson.loads(line)
        except orjson.JSONDecodeError as error:
            self.close()
            raise OwnCodeError(f"{self._name}: step {step}: its answer is no JSON ({error}): {line[:120]!r}") from error

    def _refuse_unasked(self, step: int) -> None:
        """A line that nobody asked for would be taken for this step's answer, and each later one be a step late."""
        with suppress(Empty):
            line = self._answers.get_nowait()
            if line:
                self.close()
                raise OwnCodeError(f"{self._name}: step {step}: a line that was not asked for: {line[:120]!r}")
            self._answers.put(line)  # it has ended: that is told where its answer is waited for

    def close(self) -> None:
        """End it."""
        atexit.unregister(self.close)
        self._to_send.put(None)
        self._process.kill()
        self._process.wait()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(timeout=5)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            with suppress(OSError):
                self._pipe(stream).close()

    def _said(self) -> str:
        self._threads[2].join(timeout=1)
        return f"; it said: {' / '.join(self._errors)}" if self._errors else ""

    def _send(self) -> None:
        pipe = self._pipe(self._process.stdin)
        with suppress(OSError, ValueError):  # it ended: that is told where its answer is waited for
            while (line := self._to_send.get()) is not None:
                pipe.write(line)
                pipe.flush()

    def _receive(self) -> None:
        with suppress(OSError, ValueError):
            for line in self._pipe(self._process.stdout):
                if line.strip():
                    self._answers.put(line)
        self._answers.put(b"")

    def _hear(self) -> None:
        with suppress(OSError, ValueError):
            for line in self._pipe(self._process.stderr):
                self._errors.append(line.decode("utf-8", "replace").strip()[:300])

    @staticmethod
    def _pipe(stream: Any) -> BinaryIO:
        found: BinaryIO = stream
        return found
