"""A session that wants to be more than text, on every page that shows it, in headless Chromium."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser
ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 40_000  # milliseconds
TRAP = ("Open this link now: http://192.0.2.7/open [click](http://192.0.2.7/md) <a href='http://192.0.2.7/a'>here</a> "
        "![](http://192.0.2.7/i.png) <img src='http://192.0.2.7/x.png' onerror='window.pwned=1'><script>window.pwned=1"
        "</script> **bold** \x1b[31mred\x1b[0m bell\x07 back\x08 nul\x00 \u202egnirts \u05e9\u05dc\u05d5\u05dd \u2066end")
LITERAL = ("Open this link now: http://192.0.2.7/open [click](http://192.0.2.7/md)", "<a href='http://192.0.2.7/a'>here</a>",
           "![](http://192.0.2.7/i.png)", "onerror='window.pwned=1'><script>window.pwned=1</script> **bold**",
           r"\x1b[31mred\x1b[0m bell\x07 back\x08 nul\x00 \u202egnirts", "\u05e9\u05dc\u05d5\u05dd")
HUGE = 5_000_000
DECODE = "decode-adr18:trigger.at=0.4,tail_tokens=200"


@pytest.fixture(scope="module")
def trapped(stored: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one session: every message is a trap, and one tool result is a line of 5 MB."""
    folder = tmp_path_factory.mktemp("trapped")
    messages: list[dict[str, Any]] = [{"role": "system", "content": TRAP}]
    for n in range(5):
        call = {"id": f"c{n}", "type": "function", "function": {"name": "read_file", "arguments": json.dumps(
            {"path": f"src/m{n}.py", "note": TRAP})}}
        messages += [{"role": "user", "content": f"Task {n}. {TRAP}"},
                     {"role": "assistant", "content": TRAP, "tool_calls": [call]},
                     {"role": "tool", "tool_call_id": f"c{n}", "content": TRAP + ("x" * HUGE if n == 4 else " line" * 40)},
                     {"role": "assistant", "content": f"Done {n}. {TRAP}"}]
    file = folder / "trap **b** <i>.jsonl"
    file.write_text("".join(json.dumps(m) + "\n" for m in messages), encoding="utf-8")
    stored([file], folder / "run")
    return folder / "run"


@pytest.fixture(scope="module")
def address(trapped: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The dashboard on that run, started as the command starts it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "replay.cli", "dashboard", str(trapped), "--port", str(port)]
    log = tmp_path_factory.mktemp("dashboard") / "log.txt"
    with log.open("w") as said, subprocess.Popen(command, cwd=ROOT, stdout=said, stderr=said) as server:
        try:
            for _ in range(600):
                with contextlib.suppress(urllib.error.URLError), urllib.request.urlopen(url):
                    break
                time.sleep(0.1)
            yield url
        finally:
            server.terminate()
            server.wait(timeout=20)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Debian's Chromium; skipped where it or Playwright is absent."""
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("no chromium on this machine")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as session:
        browser = session.chromium.launch(executable_path=path, args=["--headless", "--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.mark.parametrize(("path", "where"), [
    ("/step?step=7&a=full-history&b=recorded&show=All+messages", ".rw-views"),
    ("/step?step=7&a=full-history&b=recorded&show=Find+a+message&q=Open+this+link&m=1", ".stMain"),
    (f"/compactions?policy={DECODE}", ".stMain"),
    ("/step?step=10&a=full-history&b=recorded&show=All+messages&at=19", ".rw-views"),
    ("/annotate?losses=yes", None), ("/session", None), ("/regressions", None), ("/sweep", None), ("/", None),
])
def test_traps_are_text_on_every_page(chromium: Any, address: str, path: str, where: str | None) -> None:
    """Nothing runs, no element comes out of a message, no request leaves; pages of messages show the traps literally."""
    with chromium.new_page(viewport={"width": 1280, "height": 800}, base_url=address) as tab:
        asked: list[str] = []
        tab.on("request", lambda request: asked.append(request.url))
        tab.on("websocket", lambda socket: asked.append(socket.url))
        tab.goto(path)
        tab.wait_for_selector(".stMain h1", timeout=PATIENCE)
        if where:
            tab.wait_for_function("document.querySelector('.stMain').innerText.includes('Open this link now')",
                                  timeout=PATIENCE)
        tab.wait_for_timeout(1_000)
        shown = tab.locator(where or ".stMain").first.inner_text()

        assert "undefined" == tab.evaluate("typeof window.pwned")
        assert 0 == tab.locator(".stMain a[href*='192.0.2.7'], .stMain img[src*='192.0.2.7'], .stMain script").count()
        assert [] == [c for c in "\x00\x07\x08\x1b\u202e\u2066" if c in tab.locator("body").inner_text()]
        assert [] == [u for u in asked if not u.startswith((address, address.replace("http", "ws"), "data:", "blob:"))]
        assert 400_000 > len(tab.locator("body").inner_text())
        assert 0 == tab.locator('[data-testid="stException"]').count()
        if path.endswith("at=19"):
            tab.wait_for_function("document.querySelector('.stMain').textContent.includes('characters: see the raw JSON')",
                                  timeout=PATIENCE)
        if where == ".rw-views":
            assert [] == [text for text in LITERAL if text not in shown]
        elif where:
            assert "Open this link now: http://192.0.2.7/open" in shown
