"""The report in a real browser: it must work there, and ask nothing of a network."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

import localshapley as ls
from localshapley.report import write_report
from made import changed
from report.parts import CURVES, OWNERS, SCRIPT, errors_of, gap_of, suspects_of

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def valuation():
    data = ls.datasets.load("breast_cancer")
    rows = slice(0, 120)
    arguments = data.X[rows], data.y[rows], data.X_test[:60], data.y_test[:60]
    support = ls.supports.Nearest(10)
    v = ls.value(*arguments, model=DecisionTreeClassifier(), support=support, method="sample", budget=1500)
    return changed(v, ids=pd.Index([f"p{i}" for i in range(119)] + [SCRIPT], name="patient"))


@pytest.fixture(scope="module")
def labels():
    return np.array(["malignant", "benign"])[ls.datasets.load("breast_cancer").y[:120]]


@pytest.fixture(scope="module")
def path(tmp_path_factory, valuation, labels):
    path = tmp_path_factory.mktemp("report") / "report.html"
    rows = pd.DataFrame({SCRIPT: np.arange(120) / 7, "note": ["long " * 40, "مرحبا بالعالم", "😀", SCRIPT] * 30})
    rows["when"] = pd.date_range("2024-01-01", periods=120).where(np.arange(120) % 5 > 0)
    rows["gone"] = np.where(np.arange(120) % 3, np.nan, np.arange(120.0))
    rows = rows.assign(**{f"measure {i}": np.arange(120) + i for i in range(20)})
    levels = ls.plan(*ls.datasets.load("iris")[:4], model="knn").levels
    parts = {
        "suspects": errors_of(valuation, suspects_of(valuation, 30), labels),
        "curves": CURVES,
        "owners": OWNERS,
        "gap": gap_of(valuation),
    }
    named = {"title": f"Patients {SCRIPT}", "target": "diagnosis", "owner": ["north", "<b>south"] * 60}
    write_report(path, valuation, rows, y=labels, levels=levels, **named, **parts)
    return path


@pytest.fixture
def opened(opening, path):
    """Open the page."""
    return lambda **settings: opening(path, **settings)


def column(page, table, place):
    """The cells of a column, as they are on the screen."""
    return page.locator(f"[data-table={table}] tbody tr td:nth-child({place + 1})").all_inner_texts()


def all_cells(page):
    script = "tables => tables.map(t => [...t.querySelectorAll('tbody td')].map(cell => cell.textContent))"
    return page.locator("[data-table]").evaluate_all(script)


def test_the_page_is_the_same_without_javascript(opened):
    plain, live = opened(java_script_enabled=False), opened()
    assert all_cells(plain) == all_cells(live)
    assert all(len(cells) > 0 for cells in all_cells(plain))
    assert plain.locator("#theme").is_hidden()
    assert not plain.locator("button:visible").count()


def test_tables_sort_by_click_and_by_key(opened, valuation):
    page = opened()
    head = page.locator("[data-table=rows] th").nth(1)
    ascending = [f"{x:.4f}" for x in np.sort(valuation.values)]
    assert head.get_attribute("aria-sort") == "none"
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert column(page, "rows", 1) == ascending[:25]
    head.get_by_role("button").press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    assert column(page, "rows", 1) == ascending[::-1][:25]
    page.locator("[data-table=rows] th").first.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "none"
    assert column(page, "rows", 0)[1:4] == ["p0", "p1", "p2"]  # numbers in names count as numbers


def test_missing_cells_come_last_in_both_directions(opened):
    page = opened()
    page.locator("#rows .tools").last.get_by_label("Rows").select_option("100")
    place = page.locator("[data-table=rows] th").all_inner_texts().index("gone")
    button = page.locator("[data-table=rows] th").nth(place).get_by_role("button")
    for order in (1, -1):
        button.click()
        cells = column(page, "rows", place)
        assert cells[:40] == [str(i) for i in range(0, 120, 3)][::order]
        assert set(cells[40:]) == {""}


def test_tables_filter_search_and_page(opened, valuation, labels):
    page = opened()
    tools = page.locator("#rows .tools").first
    found = tools.locator(".found")
    assert found.inner_text() == "1–25 of 120"
    tools.get_by_label("value").select_option("below zero")
    below = int((valuation.values < 0).sum())
    assert found.inner_text().endswith(f"of {below}")
    assert all(cell.startswith("-") for cell in column(page, "rows", 1))
    tools.get_by_label("diagnosis").select_option("benign")
    both = int(((valuation.values < 0) & (labels == "benign")).sum())
    assert 0 < both < below
    assert found.inner_text() == f"1–{both} of {both}"
    tools.get_by_label("value").select_option("all")
    tools.get_by_label("diagnosis").select_option("all")
    tools.get_by_label("Search").fill("P11")
    assert sorted(column(page, "rows", 0)) == sorted(["p11", *(f"p{i}" for i in range(110, 119))])
    tools.get_by_label("Search").fill("no such thing")
    assert found.inner_text() == "nothing found"
    tools.get_by_label("Search").fill("")
    buttons = page.locator("#rows .tools").last
    assert buttons.get_by_text("Previous").is_disabled()
    for _ in range(4):
        buttons.get_by_text("Next").click()
    assert found.inner_text() == "101–120 of 120"
    assert buttons.get_by_text("Next").is_disabled()
    buttons.get_by_label("Rows").select_option("50")
    assert found.inner_text() == "1–50 of 120"
    assert len(column(page, "rows", 0)) == 50


def test_user_text_stays_text(opened):
    page = opened()
    assert page.title() == f"Patients {SCRIPT}"
    assert page.locator("script").count() == 2
    tools = page.locator("#rows .tools").first
    tools.get_by_label("Search").fill(SCRIPT.upper())
    assert SCRIPT in column(page, "rows", 0)
    assert page.locator("script").count() == 2
    assert page.locator("[data-table=rows] th").get_by_text(SCRIPT).count() == 1


def luminance(colour):
    """Relative luminance of ``rgb(...)``, as the accessibility guidelines have it."""
    parts = [int(part) / 255 for part in colour[4:-1].split(",")]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def background(page):
    return luminance(page.evaluate("getComputedStyle(document.body).backgroundColor"))


READ = ["body", "a", "figcaption", "td.low", "dt", "th button", ".headline li", "summary", ".across", "text.tick"]


def contrasts(page):
    """Contrast of the text of some elements to the background."""
    first = "e => getComputedStyle(document.querySelector(e))[e === 'text.tick' ? 'fill' : 'color']"
    back = background(page)
    for ink in map(luminance, page.evaluate(f"names => names.map({first})", READ)):
        yield (max(ink, back) + 0.05) / (min(ink, back) + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_with_enough_contrast(opened, scheme):
    page = opened(color_scheme=scheme)
    assert (background(page) < 0.1) == (scheme == "dark")
    for _ in range(2):
        assert min(contrasts(page)) >= 4.5
        before = background(page)
        page.locator("#theme").click()
        assert abs(background(page) - before) > 0.5
    assert (background(page) < 0.1) == (scheme == "dark")


def test_paper_is_white_and_shows_what_is_folded(opened):
    page = opened(color_scheme="dark")
    assert page.locator("details[open]").count() == 0
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert background(page) == 1.0
    assert page.locator("details:not([open])").count() == 0
    assert not page.locator(".tools").first.is_visible()
    assert len(column(page, "suspects", 0)) == 30
    assert len(column(page, "rows", 0)) == 25
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert len(column(page, "suspects", 0)) == 25
    assert page.locator("details[open]").count() == 0


@pytest.mark.parametrize("width", [390, 1200])
def test_nothing_sticks_out(opened, width):
    page = opened(viewport={"width": width, "height": 800})
    page.locator("details").evaluate_all("all => all.forEach(d => { d.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    right = "e => !e.closest('.scroll') && e.getBoundingClientRect().right > innerWidth + 1"
    assert page.locator("main *").evaluate_all(f"all => all.filter({right}).map(e => e.outerHTML)") == []
    low = "e => e.getBoundingClientRect().height < 10"
    small = page.locator("svg text").evaluate_all(f"all => all.filter({low}).length")
    assert small == 0  # texts in charts do not shrink with the screen


def heads(page, table):
    """Names of the columns that are on the screen."""
    return page.locator(f"[data-table={table}] th:visible").all_inner_texts()


def test_columns_are_chosen_by_the_reader(opened):
    page = opened()
    first = heads(page, "suspects")
    assert first[:5] == ["patient", "decision", "suspicion", "diagnosis", "suggested"]
    assert "owner" in first
    assert "measure 1" in first
    assert not {"measure 2", "neighbours against"} & set(first)
    chooser = page.locator("#suspects details.columns")
    summary = chooser.locator("summary")
    n = page.locator("[data-table=suspects] th").count()
    assert summary.inner_text() == f"Columns: {len(first)} of {n} shown"
    summary.click()
    chooser.get_by_label("neighbours against").check()
    chooser.get_by_label("measure 1", exact=True).uncheck()
    assert heads(page, "suspects") == [name for name in first if name != "measure 1"] + ["neighbours against"]
    assert page.locator("[data-table=suspects] tbody tr").first.locator("td:visible").count() == len(first)
    page.locator("#suspects .tools").first.get_by_label("Search").fill("p1")  # lines that are drawn again hide them too
    assert page.locator("[data-table=suspects] tbody tr").first.locator("td:visible").count() == len(first)
    chooser.get_by_role("button", name="Show all").click()
    assert len(heads(page, "suspects")) == n
    chooser.get_by_role("button", name="Show fewer").click()
    assert heads(page, "suspects") == first


def test_all_columns_are_there_without_javascript(opened):
    page = opened(java_script_enabled=False)
    assert {"measure 19", "neighbours against"} <= set(heads(page, "suspects"))


def test_a_link_opens_what_is_folded(opened):
    page = opened()
    assert not page.locator("#cost details").first.evaluate("fold => fold.open")
    page.locator("nav a", has_text="Cost").click()
    assert page.locator("#cost > details").evaluate("fold => fold.open")
    page.locator("nav a", has_text="Suspects").click()
    assert not page.locator("#suspects details.columns").evaluate("fold => fold.open")


@pytest.mark.parametrize("width", [390, 1200])
def test_wide_tables_scroll_in_their_box(opened, width):
    page = opened(viewport={"width": width, "height": 800})
    page.locator("#suspects details.columns summary").click()
    page.locator("#suspects details.columns").get_by_role("button", name="Show all").click()
    box = page.locator("[data-table=suspects]")
    wide, own = box.evaluate("e => [e.scrollWidth, e.clientWidth]")
    assert wide > own
    assert own <= width
    box.evaluate("e => { e.scrollLeft = e.scrollWidth; }")
    last = page.locator("[data-table=suspects] th").last.bounding_box()
    assert last["x"] + last["width"] <= width
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_contents_lead_to_sections_and_tables_have_names(opened):
    page = opened()
    links = page.locator("nav a").evaluate_all("all => all.map(a => a.hash)")
    assert len(links) == 13
    assert all(page.locator(f"section{link} h2").count() == 1 for link in links)
    regions = page.locator("[data-table]").evaluate_all("all => all.map(e => e.getAttribute('aria-label'))")
    assert len(set(regions)) == len(regions) == 14
    charts = page.locator("[role=img]").evaluate_all(
        "all => all.every(e => e.getAttribute('aria-label') || e.querySelector('title').textContent)"
    )
    assert charts
