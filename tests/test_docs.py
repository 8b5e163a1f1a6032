"""Every python block of the documentation runs, and every command of ours, page by page, in the order of the page."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from localshapley.cli import main

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [
    page
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if BLOCK.search(page.read_text(encoding="utf-8"))
]


@pytest.mark.filterwarnings("default::localshapley.errors.LocalShapleyWarning")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_runs_as_it_stands(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    namespace = {"__name__": "a_page_of_the_docs"}
    for block in BLOCK.finditer(text):
        if block[1] == "bash":
            run_commands(block[2])
            continue
        lines_before = text.count("\n", 0, block.start(2))  # so that a traceback names the line of the page
        exec(compile("\n" * lines_before + block[2], page, "exec"), namespace)


def run_commands(block):
    """Run the lines that call the command line; installing, make and benchmarks are for people."""
    for line in block.replace("\\\n", " ").splitlines():
        if line.startswith("localshapley "):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(sys, "argv", shlex.split(line, comments=True))
                with pytest.raises(SystemExit) as ended:
                    main()
            assert ended.value.code == 0, line


def test_every_picture_of_a_page_is_there():
    for page in (ROOT / "docs").rglob("*.md"):
        for name in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / name).is_file(), f"{page.name}: {name}"


def test_there_are_pages():
    assert len(PAGES) > 5
