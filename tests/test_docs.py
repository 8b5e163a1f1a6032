"""Every python block of the documentation runs, and every command of ours, page by page, in the order of the page."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

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
            words = shlex.split(line, comments=True)[1:]
            done = subprocess.run([sys.executable, "-m", "localshapley", *words], capture_output=True, text=True)
            assert done.returncode == 0, f"{line}\n{done.stderr}"


def test_there_are_pages():
    assert len(PAGES) > 5
