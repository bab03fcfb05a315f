"""The dashboard in headless Chromium: real content, hostile text as text, nothing sent elsewhere."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser
ROOT = Path(__file__).resolve().parents[2]
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync"]
HOSTILE = "hostile **bold** <b>"
PATIENCE = 60_000  # milliseconds
LITERAL = ("<script>window.pwned=1</script>", "**bold**", "# heading", "[a](http://x)", "<img src=http://192.0.2.1/i.png",
           r"\x1b[31mred\x1b[0m", r"\u202egnirts", ":red[shout]", "$x^2$", "`code`")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Debian's Chromium; skipped where it or Playwright is absent."""
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("no chromium on this machine")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as session:
        browser = session.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def address(run: Path, chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The dashboard, started as the command starts it, on a free port; only where there is a browser to look at it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "replay.cli", "dashboard", str(run), "--port", str(port)]
    log = tmp_path_factory.mktemp("dashboard") / "log.txt"
    # A file, not a pipe: Streamlit says goodbye when it is stopped, and a closed pipe would keep it from stopping.
    with log.open("w") as said, subprocess.Popen(command, cwd=ROOT, stdout=said, stderr=said) as server:
        try:
            _wait(f"http://127.0.0.1:{port}/", server, log)
            yield f"http://127.0.0.1:{port}"
        finally:
            _stop(server)


def _stop(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    try:
        server.wait(timeout=20)
    except subprocess.TimeoutExpired:
        server.kill()
        raise


def _wait(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(300):
        if server.poll() is not None:
            pytest.fail(f"the dashboard ended: {log.read_text()}")
        with contextlib.suppress(urllib.error.URLError), urllib.request.urlopen(url):
            return
        time.sleep(0.1)
    pytest.fail("the dashboard did not answer within 30 s")


@pytest.fixture
def page(chromium: Any, address: str) -> Iterator[Any]:
    """A page at 1280 × 800; afterwards nothing of the transcript ran and no request left this machine."""
    with chromium.new_page(viewport={"width": 1280, "height": 800}, base_url=address) as tab:
        asked: list[str] = []
        tab.on("request", lambda request: asked.append(request.url))
        tab.on("websocket", lambda socket: asked.append(socket.url))
        yield tab
        assert tab.evaluate("typeof window.pwned") == "undefined"
        here = tuple(f"{scheme}://{address.removeprefix('http://')}/" for scheme in ("http", "ws"))
        assert [] == [url for url in asked if not url.startswith((*here, "data:", "blob:"))]
        assert asked


def _see(page: Any, text: str) -> None:
    page.get_by_text(text).first.wait_for(timeout=PATIENCE)


def _at_step(page: Any, step: int) -> None:
    """Wait until the address and the page both are at a step."""
    page.wait_for_function(f"location.search.includes('step={step}') "
                           f"&& document.querySelector('input[type=number]')?.value === '{step}'", timeout=PATIENCE)


def test_the_compare_page_shows_the_run(page: Any) -> None:
    """Leaderboard, recommendation and differences are on the page."""
    page.goto("/")
    for text in ("Compare policies", "No single policy is recommended", "mean view, tokens", "Against full-history"):
        _see(page, text)
    page.wait_for_selector('[data-testid="stVegaLiteChart"] :is(canvas, svg)', timeout=PATIENCE)
    _see(page, "smallest effect found")

    assert 2 == page.locator("table.rw-table").count()
    assert 3 + 2 == page.locator("table.rw-table tbody tr").count()
    assert 0 == page.locator('[data-testid="stException"]').count()


def test_a_policy_of_the_leaderboard_opens_in_a_session(page: Any) -> None:
    """A click on its button leads to the session page with that policy beside the record, and back again."""
    page.goto("/")
    page.get_by_role("radio", name="mycodeagent:rounds=1").click(timeout=PATIENCE)
    page.wait_for_url("**/session?**", timeout=PATIENCE)
    _see(page, "first difference from the record")

    assert ["recorded", "mycodeagent:rounds=1"] == _query(page, "p")
    page.go_back()
    _see(page, "Against full-history")


def _query(page: Any, key: str) -> list[str]:
    found: list[str] = page.evaluate("key => new URLSearchParams(location.search).getAll(key)", key)
    return found


def _click_until(page: Any, target: Any, done: str) -> None:
    """Click a chart until the address says so: a chart takes no click while it is being laid out."""
    target.locator("canvas, svg").first.wait_for(timeout=PATIENCE)
    target.scroll_into_view_if_needed()
    for _ in range(20):
        if done in page.url:
            return
        with contextlib.suppress(Exception):
            target.click(timeout=2_000)
        page.wait_for_timeout(1_000)
    pytest.fail(f"{page.url} does not say {done}")


def test_a_click_on_the_curve_opens_that_step(page: Any) -> None:
    """The clicked step stands in the address of the step browser, and the page shows it."""
    page.goto("/session?session=plain")
    _see(page, "first difference from the record")
    _click_until(page, page.locator('[data-testid="stVegaLiteChart"]').first, "/step?")

    step = int(_query(page, "step")[0])
    assert 1 <= step <= 12
    _at_step(page, step)


def test_hostile_text_stands_literally_in_the_step_browser(page: Any) -> None:
    """Script, Markdown, terminal codes and a direction override are characters on the page, nothing more."""
    page.goto("/step?step=8&a=full-history&b=recorded&show=All+messages")
    page.wait_for_selector(".rw-views .rw-cell", timeout=PATIENCE)
    shown = page.locator(".rw-views").first.inner_text()

    assert [] == [text for text in LITERAL if text not in shown]
    assert 0 == page.locator(".rw-views a, .rw-views img, .rw-views script, .rw-views b b, .rw-views h1").count()
    assert "\u202e" not in page.locator("body").inner_text()


def test_the_step_browser_labels_differences_and_walks(page: Any) -> None:
    """Both views stand side by side with words on the differences; buttons, keys and the way back change the step."""
    page.goto("/step?session=plain&step=7&a=decode-adr18%3Atrigger.at%3D0.4%2Ctail_tokens%3D200&b=full-history")
    page.wait_for_selector(".rw-views .rw-cell", timeout=PATIENCE)
    assert "missing" in page.locator(".rw-legend").inner_text()
    assert 2 == page.locator(".rw-card").count()

    page.get_by_role("button", name="Next change").click(timeout=PATIENCE)
    _at_step(page, 11)
    page.keyboard.press("p")
    _at_step(page, 10)
    page.go_back()
    _at_step(page, 11)
    page.go_back()
    _at_step(page, 7)


def test_a_session_goes_along_to_the_other_page(page: Any) -> None:
    """The link under the curve opens the step browser on the session that is drawn, and its address says so."""
    page.goto("/session?session=plain")
    page.get_by_text("Open this session in the step browser").click(timeout=PATIENCE)
    page.wait_for_url("**/step?**session=plain**", timeout=PATIENCE)
    page.wait_for_selector(".rw-views .rw-cell", timeout=PATIENCE)

    assert "12" in page.locator("label", has_text="Step (1 to").inner_text()


def test_the_pages_are_readable_in_the_dark(page: Any) -> None:
    """With a dark colour scheme text is light on dark."""
    page.emulate_media(color_scheme="dark")
    page.goto("/")
    page.wait_for_selector("table.rw-table", timeout=PATIENCE)
    colours = page.evaluate("""() => [getComputedStyle(document.querySelector('table.rw-table td')).color,
        getComputedStyle(document.querySelector('.stApp')).backgroundColor].map(c => c.match(/\\d+/g).slice(0, 3))""")

    text, ground = (sum(map(int, c)) for c in colours)
    assert text > 500
    assert ground < 200
