"""OpenHands events as text and blocks, as the model was shown them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from replay.blocks import Block, Image, Opaque, Text
from replay.readers.common import image, json_text

_BOOKKEEPING = frozenset({
    "action", "thought", "action_risk", "security_risk", "is_confirmed", "confirmation_state", "keep_prompt",
    "kernel_init_code", "hidden", "blocking", "is_static", "id", "timestamp", "source", "message", "cause", "timeout",
    "tool_call_metadata", "llm_metrics", "response_id"})
"""Arguments of an action that are the program's and not the model's."""


def arguments_of(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """An action's arguments; the oldest events hold them at their top."""
    return _inner(event, "args")


def extras_of(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """An observation's extras; the oldest events hold them at their top."""
    return _inner(event, "extras")


def _inner(event: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    inner = event.get(name)
    return inner if isinstance(inner, dict) else event


def text_of(value: Any) -> str:
    """A string as it stands, nothing as empty, else JSON."""
    return "" if value is None else json_text(value)


def call_arguments(event: Mapping[str, Any]) -> str:
    """The arguments of an action whose call was not recorded, as JSON text."""
    return json_text({k: v for k, v in arguments_of(event).items() if k not in _BOOKKEEPING and v is not None})


def prompt_blocks(event: Mapping[str, Any]) -> list[Block]:
    """A message action: its text and its images."""
    arguments = arguments_of(event)
    content = arguments.get("content")
    text = text_of(event.get("message") if content is None else content)
    images = images_of(arguments.get("image_urls") or arguments.get("images_urls"))
    return [*([Text(text=text)] if text else []), *images]


def images_of(urls: Any) -> list[Image | Opaque]:
    """Images by their data; a link that holds none is opaque."""
    found: list[Image | Opaque] = []
    for url in urls if isinstance(urls, list) else []:
        if isinstance(url, str) and url.startswith("data:image/"):
            found.append(image("image/png", url))
        elif isinstance(url, str) and url.strip():
            found.append(Opaque(label="image link", size_bytes=len(url)))
    return found


def result_text(event: Mapping[str, Any]) -> str:
    """What the model was shown of an observation."""
    kind, text, extras = event.get("observation"), text_of(event.get("content")), extras_of(event)
    if kind == "run":
        return _command_text(text, extras.get("metadata"))
    if kind == "error":
        return text + "\n[Error occurred in processing last action]"
    if kind == "user_rejected":
        return f"OBSERVATION:\n{text}\n[Last action has been rejected by the user]"
    if kind == "delegate" and isinstance(outputs := extras.get("outputs"), dict):
        return text_of(outputs.get("content") or text)
    # By another maker, or by none that is named, an edit's content was shown as it stands.
    if kind == "edit" and extras.get("prev_exist") is False and extras.get("impl_source") == "llm_based_edit":
        return f"[New file {extras.get('path')} is created with the provided content.]\n"
    return text


def _command_text(text: str, metadata: Any) -> str:
    if not isinstance(metadata, dict):
        return text
    parts = [f"{metadata.get('prefix') or ''}{text}{metadata.get('suffix') or ''}"]
    if metadata.get("working_dir"):
        parts.append(f"[Current working directory: {metadata['working_dir']}]")
    if metadata.get("py_interpreter_path"):
        parts.append(f"[Python interpreter: {metadata['py_interpreter_path']}]")
    if metadata.get("exit_code") not in (None, -1):
        parts.append(f"[Command finished with exit code {metadata['exit_code']}]")
    return "\n".join(parts)


def is_failure(event: Mapping[str, Any]) -> bool:
    """Whether an observation tells of an error, a refusal, or a command with another exit code than 0."""
    kind, extras = event.get("observation"), extras_of(event)
    if kind in ("error", "user_rejected") or extras.get("error") is True:
        return True
    metadata = extras.get("metadata")
    code = metadata.get("exit_code") if isinstance(metadata, dict) else extras.get("exit_code")
    return kind == "run" and isinstance(code, int) and code not in (0, -1)


def recall_text(extras: Mapping[str, Any], known: set[str]) -> str:
    """What a recall put beside the prompt: the workspace's facts and knowledge that was not shown before."""
    sections = list(_workspace(extras)) if extras.get("recall_type") == "workspace_context" else []
    listed = extras.get("microagent_knowledge")
    for item in listed if isinstance(listed, list) else []:
        if isinstance(item, dict) and str(item.get("name")) not in known:
            known.add(str(item.get("name")))
            sections.append(_section("EXTRA_INFO", [
                f'Added because the keyword "{item.get("trigger")}" was found; it may not be relevant.', "",
                text_of(item.get("content"))]))
    return "\n".join(sections)


def _workspace(extras: Mapping[str, Any]) -> Iterator[str]:
    name, folder, branch = (extras.get(k) for k in ("repo_name", "repo_directory", "repo_branch"))
    if name or folder:
        on_branch = [f'The branch "{branch}" is checked out.'] if branch else []
        yield _section("REPOSITORY_INFO", [f"Repository {name or ''} is cloned to {folder or ''}.", *on_branch])
    if instructions := text_of(extras.get("repo_instructions")).strip():
        yield _section("REPOSITORY_INSTRUCTIONS", [instructions])
    if facts := list(_runtime(extras)):
        yield _section("RUNTIME_INFORMATION", facts)
    if told := text_of(extras.get("conversation_instructions")):
        yield _section("CONVERSATION_INSTRUCTIONS", [told])


def _runtime(extras: Mapping[str, Any]) -> Iterator[str]:
    if extras.get("working_dir"):
        yield f"The current working directory is {extras['working_dir']}"
    hosts, secrets = extras.get("runtime_hosts"), extras.get("custom_secrets_descriptions")
    if isinstance(hosts, dict) and hosts:
        yield "Hosts for accessing a web application:"
        yield from (f"* {host} (port {port})" for host, port in hosts.items())
    if more := text_of(extras.get("additional_agent_instructions")):
        yield more
    if isinstance(secrets, dict) and secrets:
        yield "Environment variables:"
        yield from (f"* **${name}**: {told}" for name, told in secrets.items())
    if extras.get("date"):
        yield f"Today's date is {extras['date']} (UTC)."


def _section(tag: str, lines: Sequence[str]) -> str:
    return "\n".join([f"<{tag}>", *lines, f"</{tag}>"])
