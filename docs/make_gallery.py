"""Run the code of gallery.md and how-to/report.md, and put their pictures into the folder pictures.

`python docs/make_gallery.py`; the pictures of the report need Playwright and Chromium.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DOCS = Path(__file__).parent
PICTURES = DOCS / "pictures"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SCREENS = {"report-light.png": (1200, 1045), "report-phone.png": (390, 1160)}
"""Width and height of what is shown of the report."""


@contextmanager
def made_by(page: Path) -> Iterator[Path]:
    """Run the python blocks of a page in a temporary folder, and give that folder."""
    namespace = {"__name__": "a_page_of_the_docs"}
    home = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
                exec(compile(block[1], str(page), "exec"), namespace)
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


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    make_gallery()
    photograph_report()
    for picture in sorted(PICTURES.glob("*.png")):
        print(f"{picture.relative_to(DOCS.parent)}  {picture.stat().st_size / 1000:.0f} kB")
