"""HTML made so that text cannot become markup, and the SVG drawn with it."""

from __future__ import annotations

from evals.markup import Html, escaped, joined, tag
from evals.svg import Bar, Line, bars, lines, ticks


def test_text_is_escaped_and_markup_kept() -> None:
    """What `tag` made stays, every other child and every attribute is text."""
    made = tag("p", tag("b", "x<y"), " & ", '"quoted"', title='a" onclick="b', data_of=None)

    assert '<p title="a&quot; onclick=&quot;b"><b>x&lt;y</b> &amp; &quot;quoted&quot;</p>' == made


def test_control_and_direction_characters_are_visible() -> None:
    """A terminal code, a NUL and an override are shown as escapes; a line break stays one."""
    assert "\\x1b[0m \\x00 \\u202e a\nb" == escaped("\x1b[0m \x00 \u202e a\nb")


def test_a_joined_text_is_not_trusted() -> None:
    """A plain string that merely looks like markup is text."""
    assert "&lt;i&gt;" + "<i>" == joined("<i>", Html("<i>"))


def test_attribute_names_follow_python_names() -> None:
    """`class_` and `stroke_width` are written as HTML and SVG spell them."""
    assert '<line class="a" stroke-width="1.5"/>' == tag("line", class_="a", stroke_width=1.5)


def test_ticks_are_round_and_inside() -> None:
    """Steps of 1, 2 or 5 times a power of ten within the range."""
    assert [0, 50_000, 100_000] == ticks(0, 120_000, 3)
    assert [7] == ticks(7, 7)
    assert [-2, 0, 2, 4] == ticks(-3, 5, 4)


def test_a_curve_is_drawn_pale_behind_the_end_of_its_run() -> None:
    """Two stretches, the second one faint; names of policies are text."""
    made = lines([Line(name="a", colour="#000", dash=(1, 0), x=[1, 2, 3, 4], y=[1, 2, 9, 9],
                       faint=[False, False, True, True])], 5, "step", "<tokens>")

    assert 2 == made.count("<polyline")
    assert 1 == made.count('stroke-opacity="0.6"')
    assert "&lt;tokens&gt;" in made
    assert "usable window 5" in made


def test_bars_reach_below_zero() -> None:
    """A negative value's bar ends at zero, and its interval is drawn over it."""
    made = bars([Bar(name="a", colour="#000", value=-4, low=-6, high=1, words="-4")], "difference")

    assert 1 == made.count("<rect")
    assert 1 == made.count('class="whisker"')
