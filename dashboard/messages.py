"""One message on a page: every character of a transcript as literal text, long ones folded, code coloured."""

from __future__ import annotations

from collections.abc import Iterator

from dashboard.highlight import highlighted, language_of
from evals.browse import OpenSession
from evals.markup import Html, joined, tag
from evals.text_diff import Line, line_diff
from replay.blocks import Block, Image, Opaque, Reasoning, ToolCall, ToolResult
from replay.transcript import Message
from replay.view import Shown, plain_text

HEAD_CHARS, HEAD_LINES = 600, 9
"""Characters and lines of a text that are seen without opening it."""
MOST_CHARS = 20_000
"""Characters of a text that are put on the page at all; the raw JSON has the rest."""
OPEN_DIFF = 14
"""Lines of a difference that are seen without opening it."""
MOST_PIECE = 500
"""Characters of one piece of a difference that are put on the page."""
_FORMS = {"verbatim": "", "elided": "result blanked", "summary": "summary", "injected": "injected"}


def head(shown: Shown, tokens: int) -> Html:
    """Who says it, what kind it is, and how large it is in the view."""
    message = shown.message
    origin = f"{message.origin} ({message.detail})" if message.detail else message.origin
    form = [tag("span", _FORMS[shown.form], class_="rw-form")] if _FORMS[shown.form] else []
    return tag("div", tag("b", f"{number(shown)} {message.role}"), tag("span", f" {origin} · ", class_="rw-dim"),
               tag("span", f"{tokens:,} tokens", class_="rw-dim"), *form, class_="rw-message-head")


def number(shown: Shown) -> str:
    """A message's place in the log; – for one that is in none."""
    return "–" if shown.index is None else f"#{shown.index:,}"


def body(message: Message, opened: OpenSession) -> Html:
    """Every block of a message, each as what it is."""
    blocks = [_block(b, message, opened) for b in message.blocks]
    return joined(*blocks) if blocks else tag("div", "(no text)", class_="rw-dim")


def _block(block: Block, message: Message, opened: OpenSession) -> Html:
    if isinstance(block, ToolCall):
        name = tag("div", tag("span", "→ call", class_="rw-dim"), " ", tag("b", block.name), class_="rw-call")
        return joined(name, text_box(block.arguments, "json" if block.is_object else None))
    if isinstance(block, ToolResult):
        call = opened.call_of(block.call_id, message.index)
        said = [tag("span", " · an error", class_="rw-error")] if block.is_error else []
        path = call.path if call and call.verb == "read" else None
        where = [tag("span", f" {cut(call.path)}", class_="rw-dim")] if call and call.path else []
        name = tag("div", tag("span", "← result of ", class_="rw-dim"),
                   tag("b", call.tool if call else block.name or "a call"), *where, *said, class_="rw-call")
        return joined(name, text_box(block.text, language_of(block.text, path)), *map(image_card, block.images))
    if isinstance(block, Reasoning):
        hidden = f", {block.opaque_bytes:,} bytes encrypted" if block.opaque_bytes else ""
        return joined(tag("div", f"reasoning{hidden}", class_="rw-call rw-dim"), text_box(block.text))
    return image_card(block) if isinstance(block, (Image, Opaque)) else text_box(block.text)


def image_card(block: Image | Opaque) -> Html:
    """An image or unreadable block as a card: its type, size and hash; its data is nowhere."""
    if isinstance(block, Image):
        facts = [("image", block.mime), ("size", f"{block.size_bytes:,} bytes"), ("sha256", block.sha256)]
    else:
        facts = [("not readable", block.label), ("size", f"{block.size_bytes:,} bytes")]
    return tag("div", *(tag("span", tag("b", name), f" {value}") for name, value in facts), class_="rw-image")


def text_box(text: str, language: str | None = None) -> Html:
    """A text as it reads, long ones folded; what goes beyond the page's limit is counted."""
    if not text:
        return tag("div", "(no text)", class_="rw-dim")
    seen = _head(text)
    if seen == len(text):
        return tag("pre", highlighted(text, language), class_="rw-text")
    rest, beyond = text[seen:MOST_CHARS], len(text) - MOST_CHARS
    more = [tag("p", f"{beyond:,} more characters: see the raw JSON", class_="rw-dim")] if beyond > 0 else []
    fold = tag("details", tag("summary", f"{len(text) - seen:,} more characters"),
               tag("pre", highlighted(rest, language), class_="rw-text"), *more)
    return tag("div", tag("pre", highlighted(text[:seen], language), " …", class_="rw-text"), fold)


def _head(text: str) -> int:
    """How many characters are seen at once: all of a text that is only a little longer."""
    lines = text[:HEAD_CHARS].split("\n")
    seen = min(HEAD_CHARS, len("\n".join(lines[:HEAD_LINES])))
    return len(text) if len(text) <= seen + 150 and text.count("\n") <= HEAD_LINES + 3 else seen


def difference(theirs: Message, ours: Message) -> Html:
    """What the left view changed of a message."""
    return text_difference(plain_text(theirs), plain_text(ours))


def text_difference(right: str, left: str, always: bool = False) -> Html:
    """Two texts line by line, and within lines word by word; folded where it is long, unless it is `always` open."""
    lines = line_diff(right, left)
    gone, new = (sum(line.sign == sign for line in lines) for sign in ("gone", "new"))
    words = f"What is different: {gone:,} line{_s(gone)} only right (−), {new:,} only left (+)"
    is_open = "open" if always or len(lines) <= OPEN_DIFF else None
    return tag("details", tag("summary", words), tag("div", *map(_line, lines), class_="rw-diff"), open=is_open)


def _s(count: int) -> str:
    return "" if count == 1 else "s"


_SIGNS = {"same": " ", "gone": "−", "new": "+", "skipped": "⋯"}


def _line(line: Line) -> Html:
    return tag("div", tag("span", _SIGNS[line.sign], class_="rw-d-sign"), *_pieces(line), class_=f"rw-d-{line.sign}")


def _pieces(line: Line) -> Iterator[str]:
    for text, changed in line.pieces:
        cut = text if len(text) <= MOST_PIECE else f"{text[:MOST_PIECE]} … {len(text) - MOST_PIECE:,} more characters"
        element = {"gone": "del", "new": "ins"}.get(line.sign)
        yield tag(element, cut) if changed and element else cut


def answer(opened: OpenSession, step: int) -> Html:
    """What the recorded agent answered at a step."""
    message = opened.response(step)
    if message is None:
        return tag("div", "Nothing usable came back from this call.", class_="rw-dim")
    title = tag("div", tag("b", f"#{message.index:,} {message.role}"), class_="rw-message-head")
    return tag("div", title, body(message, opened), class_="rw-cell rw-b-same rw-views")


def plain(message: Message, opened: OpenSession, look: str, *title: Html) -> Html:
    """A message of the log in a box of its own."""
    return tag("div", tag("div", *title, class_="rw-message-head"), body(message, opened),
               class_=f"rw-cell rw-views {look}")


def cut(text: str, most: int = 120) -> str:
    """The start of a text in one line."""
    line = " ".join(text[:4 * most].split())
    return line if len(line) <= most else line[:most - 1] + "…"
