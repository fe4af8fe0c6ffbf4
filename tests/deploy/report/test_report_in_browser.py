"""The page in headless Chromium: no horizontal scrolling on a phone or a desk."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from entrain.deploy.report.page import render_page
from entrain.deploy.results import Results

WIDTHS = (390, 1280)
# A window of Chromium is at least 500 pixels wide; a frame can be as narrow as a phone.
MEASURE = """
<script>
addEventListener("load", () => {
  const widths = [...document.querySelectorAll("iframe")].map(frame => ({
    wanted: frame.clientWidth,
    inner: frame.contentWindow.innerWidth,
    scroll: frame.contentDocument.documentElement.scrollWidth,
    wide: [...frame.contentDocument.querySelectorAll("body *")]
      .filter(one => one.getBoundingClientRect().right > frame.clientWidth + 1)
      .slice(0, 5).map(one => one.outerHTML.slice(0, 120)),
  }));
  const answer = document.createElement("pre");
  answer.id = "answer";
  answer.textContent = JSON.stringify(widths);
  document.body.append(answer);
});
</script>
"""


def chromium() -> str:
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("chromium is not installed (apt-get install chromium)")
    return found


def measured_widths(pages: list[str], folder: Path) -> list[dict[str, object]]:
    frames = [
        f'<iframe style="border:0;width:{width}px;height:900px" srcdoc="{html.escape(page)}">'
        "</iframe>"
        for page in pages
        for width in WIDTHS
    ]
    harness = folder / "harness.html"
    harness.write_text(f"<!doctype html><meta charset=utf-8>{MEASURE}{''.join(frames)}")
    command = [
        chromium(),
        *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
        *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
        *("--disable-dev-shm-usage", f"--user-data-dir={folder / 'profile'}"),
        *("--window-size=1400,1000", "--dump-dom", harness.as_uri()),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    answer = re.search(r'<pre id="answer">(.*?)</pre>', done.stdout, re.DOTALL)
    assert answer, done.stderr[-2000:]
    widths: list[dict[str, object]] = json.loads(html.unescape(answer[1]))
    return widths


def with_long_words(results: Results) -> Results:
    """The results with names longer than a phone is wide, and without a place to break."""
    long = "x" * 90
    rows = tuple(
        row.model_copy(
            update={
                "run": f"{row.run}{long}",
                "data": long,
                "cpu": long,
                "board": f"{row.board}{long}",
                "attention": f"{row.attention}{long}",
                "labels": tuple(f"{label}{long[:30]}" for label in row.labels or ()),
                "layers": tuple(
                    layer.model_copy(update={"name": f"{layer.name}{long}", "op": long})
                    for layer in row.layers
                ),
                "toolchain": long,
            }
        )
        for row in results.results
    )
    command = results.environment.model_copy(update={"command": f"entrain {long}"})
    return results.model_copy(update={"results": rows, "environment": command, "stopped": long})


def test_nothing_scrolls_sideways_on_a_phone_or_a_desk(
    make_results: Callable[..., Results], tmp_path: Path
) -> None:
    pages = [
        render_page(make_results()),
        render_page(make_results(seeds=(0, 1))),
        render_page(with_long_words(make_results(boards=("mps2-an386",)))),
    ]
    widths = measured_widths(pages, tmp_path)
    assert [found["inner"] for found in widths] == list(WIDTHS) * len(pages)
    for found in widths:
        assert found["scroll"] <= found["inner"], found  # type: ignore[operator]
