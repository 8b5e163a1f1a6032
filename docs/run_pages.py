"""Runs the code on the pages of the documentation, and writes what it prints into the `text` blocks below it.

    python docs/run_pages.py             # all pages
    python docs/run_pages.py README.md   # some of them

A `python` block runs as it stands, all blocks of a page in one namespace, in a folder of its own; of a `bash` block the
lines that call `localshapley` run. The `text` block that follows is what they print; a line `...` in it stands for any
number of lines. Blocks with other names are for people. `tests/test_docs.py` compares without writing.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(python|bash|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass
class Output:
    """What stands below a block, where that is, and what was printed."""

    shown: str
    start: int
    stop: int
    line: int
    printed: str

    def cut(self) -> list[str]:
        """What was printed, as long as what is shown: without the lines that `...` stands for."""
        lines = [line.rstrip() for line in self.printed.rstrip().splitlines()]
        shown = [line.strip() for line in self.shown.rstrip().splitlines()]
        if "..." not in shown:
            return lines
        head = shown.index("...")
        tail = len(shown) - head - 1
        return [*lines[:head], self.shown.splitlines()[head], *lines[len(lines) - tail :]]


def pages() -> list[Path]:
    """The pages that have code."""
    every = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in every if re.search(r"^```(python|bash)$", page.read_text(encoding="utf-8"), re.MULTILINE)]


def run_page(page: Path) -> list[Output]:
    """Run the code of a page in the folder where we are; returns the blocks that show what is printed."""
    text = page.read_text(encoding="utf-8")
    module = sys.modules["a_page_of_the_docs"] = ModuleType("a_page_of_the_docs")  # dataclasses look it up
    outputs, printed = [], None
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start(2))  # so that a traceback names the line of the page
        if block[1] == "text":
            if printed is not None:
                outputs.append(Output(block[2], block.start(2), block.end(2), line, printed))
            printed = None
            continue
        with redirect_stdout(io.StringIO()) as out:
            if block[1] == "python":
                exec(compile("\n" * line + block[2], page, "exec"), module.__dict__)
            ran = block[1] == "python" or run_commands(block[2])
        printed = out.getvalue() if ran else None
    return outputs


def run_commands(block: str) -> bool:
    """Run the lines that call the command line; installing, make and benchmarks are for people."""
    from localshapley.cli import main

    lines = [line for line in block.replace("\\\n", " ").splitlines() if line.startswith("localshapley ")]
    before = sys.argv
    for line in lines:
        sys.argv = shlex.split(line, comments=True)
        try:
            main()
        except SystemExit as ended:
            if ended.code:
                raise RuntimeError(f"{line} ended with status {ended.code}") from None
        finally:
            sys.argv = before
    return bool(lines)


def write_page(page: Path) -> bool:
    """Put what the code of a page prints in its place; returns whether the page changed."""
    text, outputs = page.read_text(encoding="utf-8"), run_page(page)
    new = text
    for output in reversed(outputs):
        new = new[: output.start] + "".join(f"{line}\n" for line in output.cut()) + new[output.stop :]
    if new != text:
        page.write_text(new, encoding="utf-8")
    return new != text


@contextmanager
def own_folder() -> Iterator[None]:
    """A folder for the files that a page makes."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def main(names: list[str]) -> None:
    """Write pages anew."""
    for page in [(Path.cwd() / name).resolve() for name in names] or pages():
        with own_folder(), redirect_stderr(io.StringIO()):
            changed = write_page(page)
        print(page.relative_to(ROOT), "changed" if changed else "")


if __name__ == "__main__":
    main(sys.argv[1:])
