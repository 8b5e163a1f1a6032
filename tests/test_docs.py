"""Every python block of the documentation runs, and every command of ours, and prints what stands below it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import run_pages

ROOT = Path(__file__).parents[1]
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")
DURATION = re.compile(r"(?<![\w.])\d[\d,]*\.?\d*(?:e[-+]?\d+)? ?(?:µs|ms|s|min|h|days|years)\b")
RATE = re.compile(r"\d[\d,]*\.?\d*/s")
SECONDS = re.compile(r"seconds=[\d.e-]+")
FORECAST = re.compile(r"(until [\d.]+, estimated) +[\d.,e]+")
"""How good it is depends on how much can be trained in two seconds."""


SLOW_PAGES = (
    "deep-networks.md", "limits.md", "choosing.md", "clean-a-model.md", "baselines.md", "gallery.md", "report.md",
    "forests.md", "boosting.md", "fixed-trees.md", "tutorial.md", "select-rows.md",
    "command-line.md", "find-label-errors.md", "mend-a-table.md", "trainer.md",
)  # fmt: skip
MARKS = {
    "README.md": [pytest.mark.quick],
    **{page: [pytest.mark.slow] for page in SLOW_PAGES},
}


@pytest.mark.filterwarnings("default::localshapley.errors.LocalShapleyWarning")
@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=MARKS.get(p.name, [])) for p in run_pages.pages()],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_code_runs_and_prints_what_stands_below_it(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for output in run_pages.run_page(page):
        assert_alike(output.shown, "\n".join(output.cut()), f"{page.name}:{output.line}")


def assert_alike(expected, found, where):
    """Compare what a page says with what is printed: numbers up to the last digit shown, times not at all."""
    shown, real = (without_times(text) for text in (expected, found))
    for line, (one, two) in enumerate(zip(shown, [*real, *[""] * len(shown)], strict=False)):
        assert NUMBER.sub("#", one) == NUMBER.sub("#", two), f"{where}, line {line + 1} of the block\n{found}"
        for a, b in zip(NUMBER.findall(one), NUMBER.findall(two), strict=True):
            assert number(a) == pytest.approx(number(b), abs=1.01 * last_digit(a)), f"{where}: {one}\n{two}\n{found}"
    assert len(shown) == len(real), f"{where}\n{found}"


def without_times(text):
    text = FORECAST.sub(r"\1 (number)", text)
    text = SECONDS.sub("seconds", RATE.sub("(rate)", DURATION.sub("(time)", text)))
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


def test_writing_a_page_puts_what_is_printed_in_its_place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1)\n```\n\n```text\n2\n```\n\n```text\nnot printed\n```\n", encoding="utf-8")
    assert run_pages.write_page(page)
    assert page.read_text(encoding="utf-8").count("```text\n1\n```") == 1
    assert "not printed" in page.read_text(encoding="utf-8")
    page.write_text('```python\nprint("a\\nb\\nc\\nd")\n```\n\n```text\n1\n...\n2\n```\n', encoding="utf-8")
    run_pages.write_page(page)
    assert "```text\na\n...\nd\n```" in page.read_text(encoding="utf-8")
    assert not run_pages.write_page(page)


def test_every_picture_of_a_page_is_there():
    for page in (ROOT / "docs").rglob("*.md"):
        for name in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / name).is_file(), f"{page.name}: {name}"


def test_there_are_pages_and_most_of_their_output_is_compared():
    every = [page.read_text(encoding="utf-8") for page in run_pages.pages()]
    compared = sum(len(re.findall(r"^```\n+```text$", text, re.MULTILINE)) for text in every)
    assert len(every) > 20
    assert compared > 60
