"""The page in a real browser: its policy lets its own style through, nothing is refused, nothing sticks out."""

from __future__ import annotations

import functools
import html
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import report_cases as cases

from tgsr import Errors
from tgsr.report import write_run_report

pytestmark = pytest.mark.browser

WIDTHS = (360, 1440)
HARNESS = """<!doctype html><title>measuring</title><body><script>
const widths = %s, found = {};
for (const width of widths) {
  const frame = document.createElement("iframe");
  frame.style = `width:${width}px;height:900px;border:0`;
  frame.onload = () => {
    const page = frame.contentDocument, root = page.documentElement;
    const wide = [...page.querySelectorAll("body *")].filter(e =>
      !e.closest(".scroll, pre, svg, .skip") && e.getBoundingClientRect().right > width + 1).map(e => e.tagName);
    const strokes = [...page.querySelectorAll("svg path")].map(e => frame.contentWindow.getComputedStyle(e).stroke);
    found[width] = {
      scroll: root.scrollWidth, client: root.clientWidth, wide,
      margin: frame.contentWindow.getComputedStyle(page.body).marginTop,
      ink: new Set(strokes).size,
      small: [...page.querySelectorAll("svg")].filter(e => e.getBoundingClientRect().width < 250).length,
    };
    if (Object.keys(found).length === widths.length) document.body.textContent = JSON.stringify(found);
  };
  frame.src = "page.html";
  document.body.append(frame);
}
</script>"""


class Quiet(SimpleHTTPRequestHandler):
    """A file server without a log, that remembers what it was asked for."""

    asked: list[str] = []  # noqa: RUF012  shared on purpose

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self.asked.append(self.path)
        super().do_GET()


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """A server of the page and of the one that measures it."""
    extra = {"q": (cases.network(("x",), "q"), True)}
    errors = Errors({"kappa": 0.3, "h": 50.0}, 25.15, {"u": 1.25})
    one = cases.result(unknown_fields=extra, warnings=("W" * 500, "Look here."), likelihood=("L" * 400,))
    write_run_report(
        one, tmp_path / "page.html", comparisons=[cases.result(method="full")], truth_errors=[errors, None]
    )
    (tmp_path / "measure.html").write_text(HARNESS % json.dumps(WIDTHS))
    Quiet.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(tmp_path)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_page_fits_phone_and_desk_and_breaks_no_rule_of_its_own(address: str, tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert browser, "Chromium is not installed. On Debian and Ubuntu: apt install chromium"
    done = subprocess.run(
        [
            browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr",
            f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=8000", "--window-size=1500,1000",
            "--dump-dom", f"{address}/measure.html",
        ],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    body = re.search(r"<body>(\{.*\})</body>", done.stdout, re.DOTALL)
    assert body, done.stdout[-2000:] + done.stderr[-2000:]
    found = json.loads(html.unescape(body.group(1)))
    for width in WIDTHS:
        page = found[str(width)]
        assert page["wide"] == []
        assert page["scroll"] <= page["client"] == width
        assert page["margin"] == "0px", "the style sheet was refused"
        assert page["ink"] > 4, "the colours of the pictures were refused"
        assert page["small"] == 0
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert console == []
    assert set(Quiet.asked) <= {"/measure.html", "/page.html", "/favicon.ico"}
