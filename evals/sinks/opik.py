"""The connection to Opik: its library, made quiet before it is imported, its configuration, calls tried again.

The modules of this package named `opik…` are the only ones that import `opik`, and only when they are used.
"""

from __future__ import annotations

import configparser
import contextlib
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from replay.errors import ConfigError, RewindowError

if TYPE_CHECKING:
    import httpx
    from opik.rest_api.client import OpikApi

Answer = TypeVar("Answer")
SWITCHES: Mapping[str, str] = {
    "OPIK_ANALYTICS_ENABLE": "false", "OPIK_SENTRY_ENABLE": "false", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
"""What Opik's library and the one beneath it would send or fetch by themselves: usage, errors, a table of prices."""
FIRST_WAIT_SECONDS = 0.5
"""Before a failed call is tried again; doubled each time."""
ATTEMPTS = 6
"""Times a call is made before the connection counts as broken; refusals for their rate do not count."""
LONGEST_WAIT_SECONDS = 600.0
"""How long one call waits altogether while the server says that it comes too often."""
_AGAIN = frozenset({408, 500, 502, 503, 504})
_TOO_OFTEN = 429
_WORDS: Mapping[int, str] = {
    401: "it does not know the key: set OPIK_API_KEY or run `opik configure`",
    403: "the key has no access to this workspace: set OPIK_WORKSPACE or run `opik configure`"}


class OpikError(RewindowError):
    """Opik's server cannot be reached, or does not do what it is asked for."""


class NotThere(OpikError):
    """The server has nothing of that name."""


class ThereAlready(OpikError):
    """The server has something of that identifier or name already."""


def quiet() -> None:
    """Turn off what Opik's library does by itself, except where the user's environment or configuration turns it on.

    Has no effect on a library that was imported before.
    """
    configured = _configured()
    for name, value in SWITCHES.items():
        if name.removeprefix("OPIK_").lower() not in configured:
            os.environ.setdefault(name, value)


def _configured() -> frozenset[str]:
    """The settings in the user's Opik configuration file."""
    parser = configparser.ConfigParser(interpolation=None)
    path = Path(os.environ.get("OPIK_CONFIG_PATH") or "~/.opik.config").expanduser()
    try:
        parser.read(path, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError) as error:
        raise ConfigError(str(path), "", f"not an Opik configuration: {type(error).__name__}") from error
    return frozenset(parser.options("opik")) if parser.has_section("opik") else frozenset()


@dataclass(frozen=True)
class Connection:
    """Opik's server as the user's own configuration names it."""

    url: str
    workspace: str
    project: str
    rest: OpikApi = field(repr=False)
    client: httpx.Client = field(repr=False)
    """What the requests go through."""

    def __enter__(self) -> Connection:
        """Close the connection at the end of a block."""
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    @property
    def place(self) -> str:
        """Where things go, in words."""
        return f"{self.url}, workspace {self.workspace}, project {self.project}"

    def call(self, what: str, function: Callable[[], Answer]) -> Answer:
        """What a call of the server gives. Tried again while that may help; raises OpikError and NotThere."""
        import httpx
        from opik.rest_api.core.api_error import ApiError

        failures, waited = 0, 0.0
        while True:
            try:
                return function()
            except ApiError as error:
                if error.status_code == _TOO_OFTEN and waited < LONGEST_WAIT_SECONDS:
                    waited += _pause(_asked_for(error.headers or {}))
                    continue
                if error.status_code not in _AGAIN or failures + 1 >= ATTEMPTS:
                    raise self._refused(what, error.status_code or 0, error.body) from error
            except httpx.TransportError as error:
                if failures + 1 >= ATTEMPTS:
                    raise OpikError(f"{self.url}: {what}: the connection broke ({type(error).__name__}); run the same "
                                    "command again and it goes on where it stopped") from error
            _pause(FIRST_WAIT_SECONDS * 2 ** failures)
            failures += 1

    def make(self, what: str, function: Callable[[], object]) -> None:
        """A call that makes something under an identifier of ours; that it is there already is as good."""
        with contextlib.suppress(ThereAlready):
            self.call(what, function)

    def _refused(self, what: str, status: int, body: Any) -> OpikError:
        told = _WORDS.get(status) or _message(body)
        kind = {404: NotThere, 409: ThereAlready}.get(status, OpikError)
        return kind(f"{self.url}: {what}: the server answered {status}: {told}")


def connect(project: str | None = None) -> Connection:
    """The server, workspace and project of Opik's configuration; `project` overrides the last. Contacts nobody yet.

    Raises ConfigError where the configuration cannot work.
    """
    quiet()
    import httpx
    import pydantic
    from opik import config, httpx_client
    from opik.rest_api.client import OpikApi

    try:
        found = config.get_from_user_inputs(project_name=project)
    except pydantic.ValidationError as error:
        wrong = ", ".join(str(e["loc"][0]) for e in error.errors() if e["loc"])
        raise ConfigError("Opik's configuration", wrong, "has a value of the wrong kind") from error
    is_wrong, reason = found.get_misconfiguration_detection_results()
    if is_wrong:
        raise ConfigError("Opik's configuration", "", " ".join(str(reason).split()))
    client = httpx_client.get(
        workspace=found.workspace, api_key=found.api_key, check_tls_certificate=found.check_tls_certificate,
        compress_json_requests=found.enable_json_request_compression)
    rest = OpikApi(base_url=found.url_override, httpx_client=client)
    # The generated client has a timeout of its own; this leaves those of Opik's HTTP client in force.
    rest._client_wrapper._timeout = httpx.USE_CLIENT_DEFAULT  # type: ignore[assignment]
    return Connection(found.url_override, found.workspace, found.project_name, rest, client)


def _pause(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def _asked_for(headers: Mapping[str, str]) -> float:
    """Seconds that a server asks to wait, a quarter at least and a minute at most; one where it does not say."""
    lower = {key.lower(): value for key, value in headers.items()}
    for name in ("retry-after", "ratelimit-reset"):
        try:
            return min(max(float(lower[name]), 0.25), 60.0)
        except (KeyError, ValueError):
            continue
    return 1.0


def _message(body: Any) -> str:
    told = body.get("message") or body.get("errors") or body if isinstance(body, dict) else body
    return str(told)[:300]
