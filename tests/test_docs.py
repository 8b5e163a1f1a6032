"""Every python block of the documentation runs, and every command of ours, and prints what stands below it."""

from __future__ import annotations

import io
import re
import shlex
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from localshapley.cli import main

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(python|bash|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")
DURATION = re.compile(r"(?<![\w.])\d[\d,]*\.?\d* ?(?:µs|ms|s|min|h|days|years)\b")
RATE = re.compile(r"\d[\d,]*\.?\d*/s")
PAGES = [
    page
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if re.search(r"^```(python|bash)$", page.read_text(encoding="utf-8"), re.MULTILINE)
]


@pytest.mark.filterwarnings("default::localshapley.errors.LocalShapleyWarning")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_runs_and_prints_what_stands_below_it(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    namespace = {"__name__": "a_page_of_the_docs"}
    printed = None
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start(2))  # so that a traceback names the line of the page
        if block[1] == "text":
            if printed is not None:
                assert_alike(block[2], printed, f"{page.name}:{line}")
            printed = None
            continue
        with redirect_stdout(io.StringIO()) as out:
            if block[1] == "python":
                exec(compile("\n" * line + block[2], page, "exec"), namespace)
            ran = block[1] == "python" or run_commands(block[2])
        printed = out.getvalue() if ran else None


def run_commands(block):
    """Run the lines that call the command line; installing, make and benchmarks are for people."""
    lines = [line for line in block.replace("\\\n", " ").splitlines() if line.startswith("localshapley ")]
    for line in lines:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", shlex.split(line, comments=True))
            with pytest.raises(SystemExit) as ended:
                main()
        assert ended.value.code == 0, line
    return bool(lines)


def assert_alike(expected, found, where):
    """Compare what a page says with what is printed: numbers up to the last digit shown, times not at all."""
    shown, real = (without_times(text) for text in (expected, found))
    for line, (one, two) in enumerate(zip(shown, [*real, *[""] * len(shown)], strict=False)):
        assert NUMBER.sub("#", one) == NUMBER.sub("#", two), f"{where}, line {line + 1} of the block\n{found}"
        for a, b in zip(NUMBER.findall(one), NUMBER.findall(two), strict=True):
            assert number(a) == pytest.approx(number(b), abs=1.01 * last_digit(a)), f"{where}: {one}\n{two}\n{found}"
    assert len(shown) == len(real), f"{where}\n{found}"


def without_times(text):
    text = RATE.sub("(rate)", DURATION.sub("(time)", text))
    return [" ".join(line.split()) for line in text.rstrip().splitlines()]


def number(text):
    return float(text.rstrip(".,").replace(",", ""))


def last_digit(text):
    mantissa, _, power = text.rstrip(".,").replace(",", "").partition("e")
    decimals = len(mantissa.partition(".")[2])
    return (10.0**-decimals if decimals else 0.0) * 10.0 ** int(power or 0)


def test_texts_that_differ_are_told_apart():
    assert_alike("a  1.23 in 0.5 s", "a 1.24 in 12.0 ms\n", "")
    for expected, found in (("a 1.23", "a 1.25"), ("a 12", "a 13"), ("a", "b"), ("a\nb", "a"), ("a", "a\nb")):
        with pytest.raises(AssertionError):
            assert_alike(expected, found, "")


def test_every_picture_of_a_page_is_there():
    for page in (ROOT / "docs").rglob("*.md"):
        for name in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / name).is_file(), f"{page.name}: {name}"


def test_there_are_pages():
    assert len(PAGES) > 5
