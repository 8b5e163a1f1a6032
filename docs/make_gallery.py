"""Run the code of gallery.md, how-to/report.md and how-to/mend-a-table.md, and put pictures into the folder pictures.

`python docs/make_gallery.py`; the pictures of the report need Playwright and Chromium.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from run_pages import run_page

DOCS = Path(__file__).parent
PICTURES = DOCS / "pictures"
SCREENS = {"report-light.png": (1200, 1045), "report-phone.png": (390, 1160)}
"""Width and height of what is shown of the report."""


@contextmanager
def made_by(page: Path) -> Iterator[Path]:
    """Run the code of a page in a temporary folder, and give that folder."""
    home = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            run_page(page)
        finally:
            os.chdir(home)
        yield Path(folder)


def make_gallery() -> None:
    """Draw the pictures of the gallery."""
    with made_by(DOCS / "gallery.md") as folder:
        for drawn in sorted(folder.glob("*.png")):
            shutil.move(drawn, PICTURES / drawn.name)


def photograph_report() -> None:
    """Take pictures of the top of the report, on a desk and on a phone."""
    from playwright.sync_api import sync_playwright

    with made_by(DOCS / "how-to" / "report.md") as folder, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, (width, height) in SCREENS.items():
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
            page.goto((folder / "everything.html").as_uri())
            page.screenshot(path=PICTURES / name)
        browser.close()


def photograph_bench() -> None:
    """Take a picture of the place to decide on suspects, with a few decisions made."""
    from playwright.sync_api import sync_playwright

    with made_by(DOCS / "how-to" / "mend-a-table.md") as folder, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1100, "height": 900}, color_scheme="light")
        page.emulate_media(reduced_motion="reduce")
        page.goto((folder / "report.html").as_uri())
        page.locator(".card").click(position={"x": 5, "y": 5})
        for key in "rrkrn":
            page.keyboard.press(key)
        page.evaluate("document.documentElement.style.scrollBehavior = 'auto'")
        page.locator(".progress").evaluate("e => scrollTo(0, e.getBoundingClientRect().top + scrollY - 16)")
        page.screenshot(path=PICTURES / "bench-light.png")
        browser.close()


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    make_gallery()
    photograph_report()
    photograph_bench()
    for picture in sorted(PICTURES.glob("*.png")):
        print(f"{picture.relative_to(DOCS.parent)}  {picture.stat().st_size / 1000:.0f} kB")
