"""Counting tokens, and from counts to what the provider billed."""

from __future__ import annotations

import pytest

from replay.blocks import Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from replay.engine import Session
from replay.errors import UnknownName
from replay.policy.base import Capacity
from replay.policy.load import policy
from replay.testing import Script
from replay.tokens import Calibration, Figure, Gauge, TokenCounter, Tokenizer, fit, tokenizer
from replay.tokens.counter import IMAGE_TOKENS
from replay.transcript import Message, Usage

TEXTS = ("", "hello world", "  indented\n\tlines\n", "中文字符和 emoji 🎉", "a" * 5_000, "<|endoftext|>", "x\ud800y",
         "<|im_start|>system<|im_end|>", "[INST] hi [/INST]", "zero\u200bwidth \u202etfel", "\x00\x1b[31m")


@pytest.fixture(scope="module")
def words() -> Tokenizer:
    """A vocabulary of its own, with nothing remembered."""
    return Tokenizer("o200k_base")


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("hello world", 2), ("tiktoken is great!", 6)])
def test_known_counts(words: Tokenizer, text: str, tokens: int) -> None:
    """Counts of o200k_base that are published elsewhere."""
    assert tokens == words.count(text)


@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base", "llama3", "qwen3"])
@pytest.mark.parametrize("special", ["<|endoftext|>", "<|im_start|>", "<|begin_of_text|>", "[INST]", "</s>"])
def test_special_tokens_spelled_in_text_are_text(name: str, special: str) -> None:
    """A special token in a transcript's text is no special token for the model: it costs as many as its letters do."""
    counted = tokenizer(name).count(special)

    assert 1 < counted <= len(special)


@pytest.mark.parametrize("special", ["<|endoftext|>", "<|fim_prefix|>", "<|im_start|>"])
def test_special_tokens_count_alike_in_a_batch(special: str) -> None:
    """Learning a text with a special token in it gives the count that counting it alone gives."""
    learned, alone = Tokenizer("o200k_base"), Tokenizer("o200k_base")
    text = f"before {special} after"
    learned.learn([text, "another"])

    assert alone.count(text) == learned.count(text)


@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base", "llama3", "mistral_v3"])
def test_batch_equals_single(name: str) -> None:
    """Counting many texts at once gives what counting each alone gives, whatever is in them."""
    learned, alone = Tokenizer(name), Tokenizer(name)
    learned.learn(TEXTS)

    assert [alone.count(t) for t in TEXTS] == [learned.count(t) for t in TEXTS]


def test_lone_surrogates_count_as_one_replacement_each(words: Tokenizer) -> None:
    """Half a surrogate pair is counted as the character that is sent in its place."""
    assert words.count("a?b") == words.count("a\ud800b")


def test_megabyte_of_spaces(words: Tokenizer) -> None:
    """A text that makes other tokenizers fail is counted, in a batch too, and is far below one a character."""
    spaces = " " * 1_000_000
    learned = Tokenizer("o200k_base")
    learned.learn(["a", spaces])

    assert 0 < words.count(spaces) < 100_000
    assert words.count(spaces) == learned.count(spaces)


def test_forgetting_changes_no_count(words: Tokenizer) -> None:
    """What was remembered only saves time."""
    before = words.count("the quick brown fox")
    words.forget()

    assert before == words.count("the quick brown fox")


def test_unknown_vocabulary() -> None:
    """A name that is not bundled is refused with those that are near."""
    with pytest.raises(UnknownName, match="did you mean o200k_base"):
        Tokenizer("o200k_bas")


def test_one_vocabulary_for_each_name() -> None:
    """Asking twice gives the same object, so that what it remembers is shared."""
    assert tokenizer("o200k_base") is tokenizer()


def test_message_counts_all_its_blocks(words: Tokenizer) -> None:
    """Text, reasoning, a call's name and arguments, a result's text and images, and what cannot be read."""
    image = Image(mime="image/png", size_bytes=9, sha256="0")
    blocks = (Text(text="hello world"), Reasoning(text="hello world"),
              ToolCall(id="c1", name="hello", arguments=" world"), Opaque(label="sealed", size_bytes=403),
              ToolResult(call_id="c1", text="hello world", images=(image,)), image)
    messages = [Message(index=0, role="user", blocks=(b,), origin="human") for b in blocks]
    whole = Message(index=0, role="user", blocks=blocks, origin="human")
    counter = TokenCounter(words)

    assert [2, 2, 2, 100, 2 + IMAGE_TOKENS, IMAGE_TOKENS] == counter.tokens(messages)
    assert [sum(counter.tokens(messages))] == counter.tokens([whole])
    assert "o200k_base" == counter.name


@pytest.mark.parametrize(("text", "sealed", "tokens"), [("hello world", 0, 2), ("hello world", 404, 2), ("", 399, 0),
                                                        ("", 2_400, 500), ("hello world", 2_400, 500)])
def test_sealed_reasoning_counts_by_its_size(words: Tokenizer, text: str, sealed: int, tokens: int) -> None:
    """Reasoning that is only sealed, or only summed up in the text, is sent all the same."""
    message = Message(index=0, role="assistant", blocks=(Reasoning(text=text, opaque_bytes=sealed),), origin="model")

    assert [tokens] == TokenCounter(words).tokens([message])


# From counted to billed tokens.

def test_calibration_by_least_squares() -> None:
    """Counts of 1,000, 2,000 and 3,000 billed as 2,600, 3,800 and 5,000: factor 1.2 and an overhead of 1,400."""
    made = fit([1_000, 2_000, 3_000], [2_600, 3_800, 5_000])

    assert pytest.approx((1.2, 1_400)) == (made.factor, made.overhead)
    assert (3, None) == (made.steps, made.error)
    assert pytest.approx(1_400 + 1.2 * 500) == made.tokens(500)


@pytest.mark.parametrize(("counted", "billed"), [([], []), ([1_000], [2_600]), ([1_000, 2_000], [2_600, 3_800]),
                                                 ([1_000] * 5, [1_100, 1_200, 1_300, 1_400, 1_500])])
def test_too_little_to_fit(counted: list[int], billed: list[int]) -> None:
    """Fewer than three steps, or counts that are all the same: factor 1, overhead unknown."""
    assert Calibration(steps=len(counted)) == fit(counted, billed)
    assert 1.0 == fit(counted, billed).factor
    assert None is fit(counted, billed).overhead


def test_overhead_is_never_negative() -> None:
    """A line that would start below zero is drawn through the origin instead."""
    made = fit([1_000, 2_000, 3_000], [500, 1_500, 2_500])

    assert 0.0 == made.overhead
    assert pytest.approx((500 + 2 * 1_500 + 3 * 2_500) / 14_000) == made.factor


def test_overhead_changes_where_the_harness_compacted() -> None:
    """What the harness put in beside its summary belongs to the overhead of the steps from there on."""
    counted, billed = [1_000, 2_000, 3_000, 500, 1_500, 2_500], [2_200, 3_400, 4_600, 5_600, 6_800, 8_000]
    made = fit(counted, billed, steps=range(11, 17), breaks=[14])

    assert pytest.approx((1.2, 1_000)) == (made.factor, made.overhead)
    assert (11, 14) == made.starts
    assert pytest.approx((1_000, 5_000)) == made.overheads
    assert pytest.approx((1_000 + 1_200, 5_000 + 1_200)) == (made.tokens(1_000, 13), made.tokens(1_000, 14))


def test_overhead_changes_where_the_bill_falls_alone() -> None:
    """A bill that falls while the counted view grows tells of something that left the window unrecorded."""
    counted, billed = [1_000, 2_000, 3_000, 3_100, 4_100, 5_100], [11_200, 12_400, 13_600, 5_720, 6_920, 8_120]
    made = fit(counted, billed)

    assert pytest.approx((1.2, 10_000)) == (made.factor, made.overhead)
    assert (1, 4) == made.starts
    assert pytest.approx((10_000, 2_000)) == made.overheads


def test_error_is_judged_on_steps_that_were_not_fitted() -> None:
    """Fitted on every other step, judged on the rest: a bill on the line has no error, one off by 10 % has."""
    counted = list(range(1_000, 9_000, 1_000))
    line = [1_400 + 1.2 * c for c in counted]
    off = [round(b * (1.1 if i % 2 else 1)) for i, b in enumerate(line)]

    assert pytest.approx(0.0) == fit(counted, [round(b) for b in line]).error
    assert pytest.approx(1 - 1 / 1.1, abs=1e-3) == fit(counted, off).error


def test_gauge_takes_the_best_figure_there_is() -> None:
    """Recorded usage where the view is the recorded one, else anchored to it, else calibrated, else counted."""
    gauge = Gauge(calibration=Calibration(factor=1.2, overhead=1_400.0, steps=3), recorded={1: (2_600, 1_000)})

    assert Figure(2_600, "recorded") == gauge.figure(1, 1_000)
    assert Figure(2_600 - 600, "anchored") == gauge.figure(1, 500)
    assert Figure(2_600, "calibrated") == gauge.figure(2, 1_000)
    assert Figure(1_000, "counted") == Gauge().figure(2, 1_000)


def test_anchored_figure_is_never_negative() -> None:
    """A view much smaller than the recorded one is at least nothing."""
    assert Figure(0, "anchored") == Gauge(recorded={1: (100, 1_000)}).figure(1, 10)


def test_steps_without_usage_are_calibrated() -> None:
    """Rows that report nothing are left out of the fit and get the fitted figure."""
    script = Script().user("a " * 500)
    for tokens in (1_000, 2_000, 3_000, 0):
        usage = Usage(input_uncached=1_400 + tokens, output=1) if tokens else None
        script.call("Read", "{}", usage=usage).result("a " * 500)
    session = Session(script.build(), TokenCounter(tokenizer()))
    views = session.replay(policy("full-history"), Capacity(window=10**6)).views

    assert 3 == session.calibration.steps
    assert ["recorded"] * 3 + ["calibrated"] == [v.figure.how for v in views]
