"""Asking through the openai SDK and reading what comes back; whatever goes wrong becomes a named problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson

from evals.model.asks import Ask, Reply, Spent
from evals.model.config import Models
from replay.errors import ConfigError
from replay.redact import Redactor

_LENGTH = ("context_length", "context length", "maximum context", "too long", "context window", "exceeds the available",
           "too many tokens", "input length", "context size")
_FATAL = (401, 402, 403, 404)


class Again(Exception):
    """An attempt that may be repeated, with the reason and, where the endpoint says so, the seconds to wait."""

    def __init__(self, problem: str, detail: str, wait: float | None = None, spent: Spent | None = None) -> None:
        super().__init__(detail)
        self.problem, self.detail, self.wait, self.spent = problem, detail, wait, spent or Spent()


@dataclass(frozen=True)
class Wire:
    """One endpoint by the SDK. Retries are made by the client above, so that every attempt is counted."""

    models: Models

    @cached_property
    def sdk(self) -> Any:
        """The SDK's client; imported here because the import takes a second."""
        import openai

        return openai.OpenAI(base_url=self.models.base_url, api_key=self.models.key(), max_retries=0,
                             timeout=self.models.timeout)

    def once(self, ask: Ask) -> Reply:
        """One attempt. Raises Again where another may help, ConfigError where none will."""
        import httpx
        import openai

        try:
            return self._send(ask)
        except openai.APIStatusError as error:
            return self._refused(error, ask)
        except openai.APITimeoutError as error:
            raise Again("unavailable", f"no answer within {self.models.timeout:g} s") from error
        except (openai.APIConnectionError, httpx.HTTPError) as error:
            raise Again("unavailable", f"connection broke: {self.clean(str(error.__cause__ or error))}") from error
        except openai.APIError as error:
            raise Again("unavailable", self.clean(str(error))) from error
        except (openai.OpenAIError, ValueError, AttributeError, TypeError, KeyError, IndexError) as error:
            # The SDK builds its objects without checking them: an odd body shows when its parts are read.
            raise Again("bad-answer", f"not an answer of this interface: {self.clean(str(error))}") from error

    def clean(self, text: str) -> str:
        """An error's text on one line without the key or anything like one."""
        key = self.models.key()
        hidden = text.replace(key, "…") if len(key) > 4 else text
        return " ".join(Redactor().text(hidden).split())[:300]

    def _send(self, ask: Ask) -> Reply:
        if ask.echo:
            return _echoed(self.sdk.completions.create(
                model=ask.model, prompt=ask.prompt, max_tokens=ask.max_tokens, echo=True, logprobs=1,
                temperature=ask.temperature))
        if ask.messages:
            return self._converse(ask)
        if self.models.api == "responses":
            return self._responses(ask)
        messages = [{"role": "system", "content": ask.system}] if ask.system else []
        more: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}} if self.models.stream else {}
        got = self.sdk.chat.completions.create(
            model=ask.model, messages=[*messages, {"role": "user", "content": ask.prompt}], max_tokens=ask.max_tokens,
            temperature=ask.temperature, seed=ask.replicate, **more)
        return _streamed(got, ask) if self.models.stream else _chat(got, ask)

    def _converse(self, ask: Ask) -> Reply:
        """One turn of a conversation, in one piece: what tools are called with is of no use before its end."""
        if self.models.api != "chat":
            raise ConfigError("model", "api", 'a conversation with tools needs the chat interface: api = "chat"')
        more = {"tools": orjson.loads(ask.tools)} if ask.tools else {}
        got = self.sdk.chat.completions.create(
            model=ask.model, messages=orjson.loads(ask.messages), max_tokens=ask.max_tokens,
            temperature=ask.temperature, seed=ask.replicate, **more)
        choice = got.choices[0]
        calls = tuple((c.id or "", c.function.name, c.function.arguments) for c in choice.message.tool_calls or ())
        if not calls or choice.finish_reason == "length":
            return _chat(got, ask)
        text = _text(choice.message.content)
        spent = _spent(got.usage, ask, text + "".join(name + arguments for _, name, arguments in calls))
        return Reply(text=text, calls=calls, finish=choice.finish_reason or "", spent=spent)

    def _responses(self, ask: Ask) -> Reply:
        more = {"instructions": ask.system} if ask.system else {}
        got = self.sdk.responses.create(
            model=ask.model, input=ask.prompt, max_output_tokens=ask.max_tokens, temperature=ask.temperature,
            store=False, extra_headers={"X-Rewindow-Sample": str(ask.replicate)}, stream=self.models.stream, **more)
        if self.models.stream:
            ends = ("response.completed", "response.incomplete")
            got = next((e.response for e in got if e.type in ends), None)
            if got is None:
                raise Again("unavailable", "the stream broke off before its end")
        return _response(got, ask)

    def _refused(self, error: Any, ask: Ask) -> Reply:
        status, said = error.status_code, self.clean(str(error.message))
        if status in (408, 409, 429) or status >= 500:
            raise Again("unavailable", f"status {status}: {said}", _wait(error.response.headers)) from error
        body = error.body if isinstance(error.body, Mapping) else {}
        if any(sign in f"{body.get('code')} {said}".lower() for sign in _LENGTH) or status == 413:
            return Reply(problem="context-length", detail=said)
        if status in _FATAL:
            raise ConfigError(self.models.address, "", f"status {status} for model {ask.model!r}: {said} "
                              f"(the key is taken from ${self.models.key_env})") from error
        return Reply(problem="rejected", detail=f"status {status}: {said}")


def _wait(headers: Mapping[str, str]) -> float | None:
    try:
        return max(0.0, float(headers.get("retry-after", "")))
    except ValueError:
        return None


def _chat(got: Any, ask: Ask) -> Reply:
    choice = got.choices[0]
    message = choice.message
    text = _text(message.content)
    return _judged(text, choice.finish_reason, getattr(message, "refusal", None), _spent(got.usage, ask, text))


def _text(content: Any) -> str:
    """Text of a message; some servers give a list of parts."""
    if isinstance(content, list):
        return "".join(str(p.get("text", "")) for p in content if isinstance(p, Mapping))
    if content is not None and not isinstance(content, str):
        raise TypeError("content is no text")
    return content or ""


def _streamed(got: Any, ask: Ask) -> Reply:
    parts: list[str] = []
    refusal, finish, usage = "", None, None
    for chunk in got:
        usage = chunk.usage or usage
        for choice in chunk.choices[:1]:
            parts.append(_text(choice.delta.content))
            refusal += getattr(choice.delta, "refusal", None) or ""
            finish = choice.finish_reason or finish
    text = "".join(parts)
    if finish is None:
        raise Again("unavailable", "the stream broke off before its end")
    return _judged(text, finish, refusal or None, _spent(usage, ask, text))


def _response(got: Any, ask: Ask) -> Reply:
    refusals = [part.refusal for item in got.output for part in (getattr(item, "content", None) or ())
                if part.type == "refusal"]
    why = getattr(got.incomplete_details, "reason", None)
    finish = {"max_output_tokens": "length", "content_filter": "content_filter"}.get(why or "", got.status or "")
    text = got.output_text
    return _judged(text, finish, refusals[0] if refusals else None, _spent(got.usage, ask, text))


def _judged(text: str, finish: str | None, refusal: str | None, spent: Spent) -> Reply:
    """A finish reason decides only where it says more than the content: many servers give a wrong one."""
    finish = finish or ""
    if refusal or finish == "content_filter":
        said = (refusal or "filtered by the endpoint")[:300]
        return Reply(finish=finish, spent=spent, problem="refusal", detail=said)
    if finish == "length":
        return Reply(text=text, finish=finish, spent=spent, problem="cut-short", detail="the answer reached max_tokens")
    if not text.strip():
        raise Again("empty", f"no content (finish reason {finish!r})", spent=spent)
    return Reply(text=text, finish=finish, spent=spent)


def _spent(usage: Any, ask: Ask, text: str) -> Spent:
    """Usage as billed; estimated from the text where the endpoint gives none."""
    given = getattr(usage, "prompt_tokens", None), getattr(usage, "completion_tokens", None)
    if given[0] is None:
        given = getattr(usage, "input_tokens", None), getattr(usage, "output_tokens", None)
    if given[0] is None:
        return Spent(input=ask.input_tokens, output=-(-len(text.encode()) // 3), estimated=True)
    details = getattr(usage, "prompt_tokens_details", None) or getattr(usage, "input_tokens_details", None)
    return Spent(input=given[0], output=given[1] or 0, cached=getattr(details, "cached_tokens", None) or 0)


def _echoed(got: Any) -> Reply:
    """Log-probabilities of a prompt that was sent back; an endpoint that has none leaves them out."""
    choice = got.choices[0]
    found = choice.logprobs
    values = getattr(found, "token_logprobs", None)
    usage = got.usage
    spent = Spent(input=usage.prompt_tokens, output=usage.completion_tokens or 0) if usage else Spent(estimated=True)
    if not values:
        return Reply(problem="rejected", detail="the endpoint gives no log-probabilities of a prompt", spent=spent)
    return Reply(finish=choice.finish_reason or "", spent=spent, text="",
                 logprobs=tuple(zip(_offsets(found), values, strict=True)))


def _offsets(found: Any) -> list[int]:
    if found.text_offset:
        return list(found.text_offset)
    offsets, at = [], 0
    for token in found.tokens:
        offsets.append(at)
        at += len(token)
    return offsets
