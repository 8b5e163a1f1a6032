"""The front page and its companions: what a visitor needs is there, and agrees with the rest of the project."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import localshapley as ls

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMPARISON = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
PROJECTS = ["localshapley", "pyDVL", "OpenDataVal", "shapiq", "cleanlab", "dattri"]
CELLS = {"✓", "partly", "–", "not documented"}


def blocks(text, language):
    """The fenced blocks of a page in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def rows_of(text, first_column, *others):
    """The rows of the first table with these columns, as lists of cells."""
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if cells_of(line) == [first_column, *others])
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append(cells_of(line))
    return rows


def cells_of(line):
    return [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]


def section(text, title):
    """What stands below a heading of the second level."""
    return text.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_the_readme_says_how_to_install():
    lines = [line for block in blocks(README, "bash") for line in block.splitlines()]
    assert any(line.startswith("pip install localshapley") for line in lines)
    assert any(line.startswith("pip install .") for line in lines)


def test_the_readme_names_the_targets_of_make_that_exist():
    named = set(re.findall(r"`make ([a-z-]+)`", README))
    assert {"demo", "test", "test-long"} <= named
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert named <= targets


def test_pictures_and_links_of_the_readme_lead_somewhere():
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README)
    assert len(pictures) == 1
    links = re.findall(r"\]\((?!https?:)([^)#]+)", README)
    assert len(links) > 20
    assert [link for link in links if not (ROOT / link).is_file()] == []


def test_links_of_the_readme_name_headings_that_are_there():
    for page, anchor in re.findall(r"\]\(([\w/.-]+\.md)#([\w-]+)\)", README):
        headings = re.findall(r"^#+ (.+)$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
        assert anchor in [re.sub(r"[^\w\s-]", "", title).strip().lower().replace(" ", "-") for title in headings]


def test_the_first_example_is_short_and_shows_what_it_prints():
    first = blocks(README, "python")[0]
    assert 3 <= len(first.splitlines()) <= 10
    after = README.split(first)[1]
    assert after.startswith("```\n\n```text\n")


def test_the_table_of_calls_fits_on_a_screen():
    rows = rows_of(README, "you want", "you call")
    assert 1 <= len(rows) <= 12
    for name in re.findall(r"`ls\.([\w.]+)\(", " ".join(call for _, call in rows)):
        found = ls
        for part in name.split("."):
            found = getattr(found, part)
        assert callable(found)


def test_the_readme_and_the_citation_file_cite_the_same_paper():
    (entry,) = blocks(README, "bibtex")
    paper = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["preferred-citation"]
    assert paper["title"] == re.search(r"title\s*=\s*\{(.+)\},", entry)[1].replace("{", "").replace("}", "")
    authors = [f"{author['family-names']}, {author['given-names']}" for author in paper["authors"]]
    assert authors == re.search(r"author\s*=\s*\{(.+)\},", entry)[1].split(" and ")


def test_the_citation_file_is_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == ls.__version__
    assert citation["license"] == "BSD-3-Clause"
    assert citation["authors"] == [{"name": "The localshapley developers"}]


def test_the_table_of_the_comparison_has_a_cell_for_each_project():
    rows = rows_of(COMPARISON, "", *PROJECTS)
    assert len(rows) > 15
    for row in rows:
        assert len(row) == 1 + len(PROJECTS), row
        assert set(row[1:]) <= CELLS, row


@pytest.mark.parametrize("page", [README, COMPARISON], ids=["README", "comparison"])
def test_every_project_has_something_and_nobody_everything(page):
    for project, column in zip(PROJECTS, list(zip(*rows_of(page, "", *PROJECTS), strict=True))[1:], strict=True):
        assert "✓" in column, project
        assert "–" in column, project


def test_the_table_of_the_readme_is_a_part_of_the_comparisons():
    whole, part = (rows_of(page, "", *PROJECTS) for page in (COMPARISON, README))
    assert 8 <= len(part) <= 12
    assert [row for row in whole if row in part] == part


@pytest.mark.parametrize("project", PROJECTS)
def test_every_cell_has_its_source_in_the_comparison(project):
    text = section(COMPARISON, project)
    assert re.search(r"^Version \d+\.\d+\.\d+", text.strip())
    place = 1 + PROJECTS.index(project)
    cells = {row[0]: row[place] for row in rows_of(COMPARISON, "", *PROJECTS) if row[place] != "–"}
    lines = re.findall(r"^- ([^:(]+?)(?: \((.+?)\))?: \S.*$", text, re.MULTILINE)
    assert [(name, cell or "✓") for name, cell in lines] == list(cells.items())


def test_the_comparison_is_of_this_version_of_ours():
    assert f"Version {ls.__version__}" in section(COMPARISON, "localshapley")
