"""The endpoint on a port of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from replay.errors import ConfigError
from replay.serving.answers import Reply
from replay.serving.anthropic import Anthropic
from replay.serving.chat import Chat
from replay.serving.endpoint import Endpoint, Wires
from replay.serving.responses import Responses

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

ADDRESS = "127.0.0.1"
PROTOCOLS: tuple[Wires, ...] = (Chat(), Responses(), Anthropic())
_HOSTS = ["127.0.0.1", "localhost"]
"""A page of another host that points its name at this machine gets nothing."""


def listening(port: int) -> socket.socket:
    """A socket on this machine; port 0: a free one. Raises ConfigError where the port is in use."""
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((ADDRESS, port))
    except OSError as error:
        found.close()
        words = f"{ADDRESS}:{port} is in use; name another, or none to get a free one"
        raise ConfigError("--port", "", words) from error
    found.listen()
    return found


def application(endpoint: Endpoint) -> Starlette:
    """The routes: the three protocols, their lists of models, and what a script may ask and tell."""
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from starlette.routing import Route

    answered = [Route(path, _answers(endpoint, p), methods=["POST"]) for p in PROTOCOLS
                for path in (p.path, p.path.removeprefix("/v1"))]
    models = [Route(path, _json(lambda _: _models()), methods=["GET"]) for path in ("/v1/models", "/models")]
    told: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
        "/v1/messages/count_tokens": lambda body: {"input_tokens": endpoint.counted(Anthropic(), body)},
        "/rewindow/refuse": lambda body: endpoint.refuse(body.get("times", 1)),
        "/rewindow/process": lambda _: endpoint.new_process()}
    posts = [Route(path, _json(do), methods=["POST"]) for path, do in told.items()]
    state = Route("/rewindow/state", _json(lambda _: endpoint.state()), methods=["GET"])
    return Starlette(routes=[*answered, *models, *posts, state],
                     middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=_HOSTS)])


def _models() -> dict[str, Any]:
    return {"object": "list", "data": [{"id": "recorded", "object": "model", "created": 0, "owned_by": "rewindow"}]}


def _answers(endpoint: Endpoint, protocol: Wires) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        body = await request.body()
        return _of_a_page() if _is_of_a_page(request) else _response(endpoint.reply(protocol, body))
    return answer


def _is_of_a_page(request: Request) -> bool:
    """Whether a web page asks: it may send to this machine, and would move the session on."""
    return "origin" in request.headers and urlsplit(request.headers["origin"]).hostname not in _HOSTS


def _of_a_page() -> Response:
    from starlette.responses import JSONResponse

    return JSONResponse({"error": {"message": "rewindow: web pages of other hosts are not answered"}}, 403)


def _response(reply: Reply) -> Response:
    from starlette.responses import Response

    kind = "text/event-stream; charset=utf-8" if reply.stream else "application/json"
    return Response(reply.body, reply.status, dict(reply.headers), media_type=kind)


def _json(do: Callable[[Mapping[str, Any]], dict[str, Any]]) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        from starlette.responses import JSONResponse

        from replay.serving.answers import loads

        body = await request.body()
        if _is_of_a_page(request):
            return _of_a_page()
        try:
            return JSONResponse(do(loads(body) if body else {}))
        except ValueError as error:
            return JSONResponse({"error": {"message": f"rewindow: {error}"}}, 400)
    return answer


def serve(endpoint: Endpoint, listener: socket.socket) -> None:
    """Answer until the process is interrupted."""
    import uvicorn

    uvicorn.Server(_config(endpoint)).run(sockets=[listener])


@contextlib.contextmanager
def served(endpoint: Endpoint, listener: socket.socket | None = None) -> Iterator[str]:
    """The endpoint in a thread of its own, on a free port where no socket is given; gives its address, no path."""
    import uvicorn

    listener = listener or listening(0)
    server = uvicorn.Server(_config(endpoint))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])), daemon=True)
    thread.start()
    try:
        yield address(listener)
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def address(listener: socket.socket) -> str:
    """The address of a socket, without a path."""
    return f"http://{ADDRESS}:{listener.getsockname()[1]}"


def _config(endpoint: Endpoint) -> Any:
    import uvicorn

    return uvicorn.Config(application(endpoint), log_config=None, access_log=False, lifespan="off", server_header=False,
                          timeout_graceful_shutdown=2)
