"""The page in a real browser: painted light and dark, no wider than the window, printable, asking for nothing."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from graft.pilot import page, report

from .png_pixels import Picture
from .seeded_history import material

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: apt-get install -y chromium")

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
DARK = "--blink-settings=preferredColorScheme=0"
WIDTH, HEIGHT = 900, 800


class Served:
    """The page on a local address, and every path that was asked for."""

    def __init__(self, html: str) -> None:
        served = self
        self.paths: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                served.paths.append(self.path)
                self.send_response(200 if self.path == "/report.html" else 404)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.end_headers()
                self.wfile.write(html.encode() if self.path == "/report.html" else b"")

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/report.html"


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    made = Served(page.render(report.build(material())))
    yield made
    made.server.shutdown()
    made.server.server_close()


def run(served: Served, *flags: str) -> None:
    assert CHROMIUM is not None
    with tempfile.TemporaryDirectory(prefix="graft-chromium-", ignore_cleanup_errors=True) as profile:
        subprocess.run(
            [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", *flags, served.url],
            check=True,
            capture_output=True,
            timeout=90,
        )


@pytest.fixture(scope="module")
def shots(served: Served, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Picture]:
    directory = tmp_path_factory.mktemp("shots")
    found = {}
    for name, flags in (("light", ()), ("dark", (DARK,))):
        path = directory / f"{name}.png"
        run(served, f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={path}", *flags)
        found[name] = Picture(path)
    return found


def near(one: tuple[int, int, int], other: tuple[int, int, int]) -> bool:
    return all(abs(a - b) <= 6 for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize(
    ("name", "paper", "ink", "series"),
    [
        ("light", (255, 255, 255), (27, 31, 36), (11, 98, 196)),
        ("dark", (13, 17, 23), (230, 237, 243), (88, 166, 255)),
    ],
)
def test_it_is_painted(
    shots: dict[str, Picture],
    name: str,
    paper: tuple[int, int, int],
    ink: tuple[int, int, int],
    series: tuple[int, int, int],
) -> None:
    picture = shots[name]
    assert (picture.width, picture.height) == (WIDTH, HEIGHT)
    assert near(picture.at(3, 3), paper)
    colours = picture.colours(every=2)
    assert sum(count for colour, count in colours.items() if near(colour, ink)) > 100, "text"
    assert sum(count for colour, count in colours.items() if near(colour, series)) > 50, "the first plot"


@pytest.mark.parametrize("name", ["light", "dark"])
def test_nothing_sticks_out_of_the_window(shots: dict[str, Picture], name: str) -> None:
    picture = shots[name]
    paper = picture.at(3, 3)
    for x in (*range(20), *range(WIDTH - 20, WIDTH)):
        assert all(near(picture.at(x, y), paper) for y in range(0, HEIGHT, 2)), x


def test_nothing_is_asked_for_but_the_page(served: Served, shots: dict[str, Picture]) -> None:
    assert shots
    assert set(served.paths) <= {"/report.html", "/favicon.ico"}


def test_it_prints(served: Served, tmp_path: Path) -> None:
    path = tmp_path / "report.pdf"
    run(served, f"--print-to-pdf={path}", "--no-pdf-header-footer", DARK)
    data = path.read_bytes()
    assert data.startswith(b"%PDF-")
    assert 3 <= data.count(b"/Type /Page\n") + data.count(b"/Type /Page ") <= 20
