"""The place to decide on suspects: what it holds, and how it works in a real browser, to the mended table."""

from __future__ import annotations

import csv

import numpy as np
import pandas as pd
import pytest

import localshapley as ls
from localshapley.audit import apply, contents
from localshapley.audit.apply_decisions import COLUMNS
from localshapley.report import render, summarise, write_report
from made import changed
from report.parts import SCRIPT, embedded, errors_of, said, suspects_of, valuation

ODD = 'a,"b"\nc'
EVIL = '</script><img src=x onerror="alert(1)">'
N_ROWS = 60


def make_table():
    """Patients of two kinds, with names and labels that try to be markup, and five wrong labels."""
    rng = np.random.default_rng(0)
    sick = np.arange(N_ROWS) % 2 == 0
    table = pd.DataFrame(
        {
            "dose": np.where(sick, 7.25, 1.5) + rng.normal(size=N_ROWS).round(3),
            "note": [f"=seen {i}, “{SCRIPT}”, and more words than fit into a cell" for i in range(N_ROWS)],
            "ward": np.where(sick, "north", EVIL),
            "kind": np.where(sick, "sick", EVIL),
        },
        index=pd.Index([EVIL, "-1+1", ODD, *(f"p{i}" for i in range(3, N_ROWS))], name="patient"),
    )
    wrong = [0, 1, 2, 13, 24]
    table.loc[table.index[wrong], "kind"] = np.where(sick[wrong], EVIL, "sick")
    return table, wrong


TABLE, WRONG = make_table()


def make_suspects(table=TABLE):
    """Suspects of a table, the wrong ones first, and the valuation that they are from."""
    values = np.where(np.isin(np.arange(len(table)), WRONG), -2.0, 1.0)
    values[[30, 31, 32]] = -0.5
    v = valuation(values, ids=table.index)
    kind = table["kind"].to_numpy()
    places = [*WRONG, 30, 31, 32]
    found = (
        v.to_frame()[["value", "stderr"]]
        .iloc[places]
        .assign(
            suspicion=np.linspace(4, 1, len(places)),
            p_wrong=np.linspace(0.95, 0.55, len(places)),
            label=kind[places],
            suggested=["sick" if kind[i] == EVIL else EVIL for i in places],
            agreement=0.1,
            neighbours=[[table.index[40]]] * len(places),
        )
    )
    return v, found


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("bench") / "report.html"
    v, found = make_suspects()
    write_report(path, v, TABLE.drop(columns="kind"), y=TABLE["kind"], suspects=errors_of(v, found, TABLE["kind"]))
    return path


@pytest.fixture
def context(browser):
    context = browser.new_context(accept_downloads=True)
    yield context
    context.close()


def progress(page):
    return page.locator(".progress strong").inner_text()


def shown(page):
    return page.locator(".card h3").inner_text().removeprefix("patient ")


def listed(page):
    """Decisions in the list, by the names of the rows."""
    cells = page.locator("[data-table=suspects] tbody tr").evaluate_all(
        "all => all.map(r => [...r.cells].map(c => c.textContent))"
    )
    return {row[0]: row[1] for row in cells}


def saved(page, folder):
    with page.expect_download() as download:
        page.get_by_role("button", name="Save decisions.csv").click()
    assert download.value.suggested_filename == "decisions.csv"
    file = folder / "decisions.csv"
    download.value.save_as(file)
    return file


def test_from_the_first_click_to_the_mended_table(opening, context, path, tmp_path):
    page = opening(path, context)
    names = TABLE.index
    assert progress(page) == "0 of 8 decided"
    assert page.get_by_role("button", name="Save decisions.csv").is_disabled()
    assert shown(page) == names[0]
    page.get_by_role("button", name="Relabel “sick”").click()  # by mouse, which goes on to the next row
    assert shown(page) == names[1]
    page.keyboard.press("r")  # and by keys
    page.keyboard.press("r")
    assert shown(page) == "p13"
    page.keyboard.press("d")
    page.get_by_label("Another label").fill("not sure")
    page.keyboard.press("Enter")
    page.keyboard.press("k")
    assert progress(page) == "6 of 8 decided"
    assert page.locator(".progress .soft").inner_text() == "1 kept, 4 relabelled, 1 dropped"
    expected = {
        names[0]: "→ sick", "-1+1": f"→ {EVIL}", ODD: "→ sick", "p13": "drop", "p24": "→ not sure", "p30": "keep",
        "p31": "", "p32": "",
    }  # fmt: skip
    assert listed(page) == expected

    page.reload()  # choices stay
    assert listed(page) == expected
    tools = page.locator("#suspects .tools").first
    tools.get_by_label("decision").select_option("undecided")
    assert list(listed(page)) == ["p31", "p32"]
    assert shown(page) == "p31"
    page.get_by_role("button", name="Drop").click()
    assert shown(page) == "p32"  # what is decided leaves the filtered list
    assert list(listed(page)) == ["p32"]
    page.keyboard.press("z")  # undone
    assert list(listed(page)) == ["p31", "p32"]
    assert progress(page) == "6 of 8 decided"

    done = apply(TABLE, saved(page, tmp_path), target="kind")
    mended = TABLE.drop(index="p13")
    mended.loc[[names[0], ODD], "kind"] = "sick"
    mended.loc["-1+1", "kind"] = EVIL
    mended.loc["p24", "kind"] = "not sure"
    pd.testing.assert_frame_equal(done.table, mended)
    assert done.new_labels == ["not sure"]
    assert page.locator("script").count() == 2
    assert page.locator("main img").count() == 0


def test_decisions_are_safe_in_a_spreadsheet_and_loaded_again(opening, context, path, tmp_path, browser):
    page = opening(path, context)
    page.locator(".card").click(position={"x": 3, "y": 3})
    for key in "krd":
        page.keyboard.press(key)
    file = saved(page, tmp_path)
    with file.open(encoding="utf-8-sig", newline="") as lines:
        heads, *rows = csv.reader(lines)
    assert heads == list(COLUMNS)
    digests = contents(TABLE.drop(columns="kind"))
    assert rows == [
        [TABLE.index[0], "keep", EVIL, EVIL, digests[0]],
        ["'-1+1", "relabel", "sick", EVIL, digests[1]],
        [ODD, "drop", EVIL, "", digests[2]],
    ]
    other = opening(path)  # another browser, as it were
    assert progress(other) == "0 of 8 decided"
    other.locator("#bench input[type=file]").set_input_files(file)
    other.get_by_text("3 decisions were loaded.").wait_for()
    assert listed(other) == listed(page)
    assert progress(other) == "3 of 8 decided"


OTHERS = [
    ("row,decision\np1,keep\n", "This file has no column “old_label”"),
    ("row;decision;old_label;new_label;contents\np30;burn;sick;;c1\n", "The decision on row “p30” is not known."),
    ("row,decision,old_label,new_label,contents\np30,keep,sick,sick,c1\n", "decisions about another table: row “p30”"),
    ("row,decision,old_label,new_label,contents\nx,keep,sick,sick,c1\n", "about another table, or about other rows"),
]


def test_files_of_other_tables_are_refused(opening, path, tmp_path):
    page = opening(path)
    for text, message in OTHERS:
        (tmp_path / "d.csv").write_text(text, encoding="utf-8")
        page.locator("#bench input[type=file]").set_input_files(tmp_path / "d.csv")
        page.locator(".refused").get_by_text(message).wait_for()
        assert progress(page) == "0 of 8 decided"


def test_a_new_report_finds_the_choices_of_its_table_and_of_no_other(opening, context, path, tmp_path):
    page = opening(path, context)
    page.get_by_role("button", name="Drop").click()
    order = np.random.default_rng(1).permutation(N_ROWS)
    mixed = TABLE.iloc[order]
    v, found = make_suspects()
    v = changed(v, values=v.values[order], stderr=v.stderr[order], n_tests=v.n_tests[order], ids=mixed.index)
    again, dosed = tmp_path / "again.html", tmp_path / "changed.html"
    rows = mixed.drop(columns="kind")
    write_report(again, v, rows, y=mixed["kind"], suspects=errors_of(v, found.iloc[1:], mixed["kind"]), title="Again")
    write_report(
        dosed, v, rows.assign(dose=rows["dose"] + 1), y=mixed["kind"], suspects=errors_of(v, found, mixed["kind"])
    )
    other = opening(again, context)
    assert progress(other) == "0 of 7 decided"  # the row is not in this list, but its decision is not lost
    other.get_by_role("button", name="Keep “sick”").click()
    with saved(other, tmp_path).open(encoding="utf-8-sig", newline="") as lines:
        assert [row[:2] for row in csv.reader(lines)][1:] == [[TABLE.index[0], "drop"], ["'-1+1", "keep"]]
    assert other.locator(".told").inner_text() == (
        "2 decisions are in decisions.csv, 1 of them on rows that are not in this list."
    )
    assert progress(opening(dosed, context)) == "0 of 8 decided"


def test_keys_work_in_the_box_alone_and_are_listed(opening, path):
    page = opening(path)
    page.locator("#findings h2").click()
    page.keyboard.press("d")
    search = page.locator("#suspects .tools").first.get_by_label("Search")
    search.press("k")
    assert search.input_value() == "k"
    search.fill("")
    assert progress(page) == "0 of 8 decided"
    page.locator("[data-table=suspects]").get_by_role("button", name="p13").click()
    assert shown(page) == "p13"
    for key, row in (("n", "p24"), ("ArrowRight", "p30"), ("p", "p24"), ("ArrowLeft", "p13")):
        page.keyboard.press(key)
        assert shown(page) == row
    assert page.locator("[data-table=suspects] tr[aria-current]").locator("td").first.inner_text() == "p13"
    keys = page.locator(".keys-of-bench")
    assert not keys.is_visible()
    page.keyboard.press("?")
    assert keys.is_visible()
    assert "keep the label" in keys.inner_text()
    page.keyboard.press("l")
    page.keyboard.type("kind of")  # letters that are keys elsewhere
    page.keyboard.press("Escape")
    assert progress(page) == "0 of 8 decided"
    page.keyboard.press("Control+d")
    assert progress(page) == "0 of 8 decided"
    page.keyboard.press("k")
    page.keyboard.press("p")
    pressed = page.locator(".decisions [aria-pressed=true]")
    assert pressed.all_inner_texts() == [f"Keep “{TABLE['kind'].iloc[13]}”\nK"]
    page.keyboard.press("u")
    assert pressed.all_inner_texts() == ["Undecided\nU"]


def test_enter_does_not_press_again_what_the_mouse_has_pressed(opening, path):
    page = opening(path)
    page.get_by_role("button", name="Relabel “sick”").click()
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    assert progress(page) == "2 of 8 decided"


def test_a_label_that_no_row_has_is_told(opening, path):
    page = opening(path)
    page.get_by_label("Another label").fill("sik")
    page.keyboard.press("Enter")
    assert page.locator(".told").inner_text().startswith("“sik” is a new label: no row of the table has it.")
    page.keyboard.press("r")
    assert not page.locator(".told").is_visible()


def test_keys_work_after_a_link_to_the_list_and_the_end_is_told(opening, path):
    page = opening(path)
    page.evaluate("location.hash = '#' + document.getElementById('bench').closest('section').id")
    page.wait_for_function("document.activeElement.getAttribute('aria-label') === 'One suspect'")
    for _ in range(8):
        page.keyboard.press("k")
    assert progress(page) == "8 of 8 decided"
    assert page.locator(".progress .soft").inner_text() == "8 kept, 0 relabelled, 0 dropped; now save them"


def test_the_row_is_shown_with_its_own_values_beside_its_nearest_rows(opening, path):
    page = opening(path)
    page.locator("[data-table=suspects]").get_by_role("button", name="p13").click()
    cells = page.locator(".beside tr").evaluate_all(
        "all => all.map(r => [...r.cells].map(c => c.textContent.replace(/[▲▼]/g, '')))"
    )
    marks, label, dose, note = cells[1][1:], cells[2][1:], cells[3][1:], cells[4][1:]
    names = [name.removesuffix(" ?") for name in marks]
    suspects = page.locator("[data-table=suspects] .to-row").all_inner_texts()
    assert [mark != name for mark, name in zip(marks, names, strict=True)] == [
        name in suspects and name != "p13" for name in names
    ]
    assert "p31 ?" in marks  # a neighbour that is a suspect says so
    assert page.get_by_text("A row with “?” is itself a suspect.").is_visible()
    assert names[0] == "p13"
    assert len(names) == 11
    assert label == ["sick"] + [EVIL] * 5 + ["sick"] * 5
    assert dose == [f"{TABLE['dose'][name]:.3f}".rstrip("0").rstrip(".") for name in names]
    assert note == [TABLE["note"][name] for name in names]
    marked = page.locator(".beside td.far small").evaluate_all("all => all.map(e => e.title)")
    assert marked
    assert all("standard deviations" in title for title in marked)
    assert page.locator(".texts dd").all_inner_texts() == [TABLE["note"]["p13"]]
    facts = page.locator(".facts").inner_text().split("\n")
    assert facts[:2] == ["p wrong", "0.78"]


PALE = """all => {
  const part = (x) => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
  const light = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map((x) => part(x / 255))
    .reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
  const back = (e) => getComputedStyle(e).backgroundColor;
  const contrast = (e) => {
    let under = e;
    while (under !== document.body && /rgba\\(.*, 0\\)|transparent/.test(back(under))) under = under.parentElement;
    const [a, b] = [light(getComputedStyle(e).color), light(back(under))];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  };
  return all.filter(e => e.textContent.trim() && e.offsetParent && contrast(e) < 4.5).map(e => e.outerHTML);
}"""
"""Finds what has too little contrast to the colour under it."""


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1200, "light")])
def test_the_box_fits_the_screen_and_can_be_read(opening, path, width, scheme):
    page = opening(path, viewport={"width": width, "height": 800}, color_scheme=scheme)
    page.locator(".card").click(position={"x": 3, "y": 3})
    for key in "k?p":
        page.keyboard.press(key)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    inside = ("p", ".button:not(:disabled) span", "kbd", "dt", "dd", "th", "td", "small", "h3")
    words = page.locator(", ".join(f".bench {name}" for name in inside))
    assert words.count() > 40
    assert words.evaluate_all(PALE) == []
    assert page.locator(".bench button:visible").evaluate_all("all => all.every(e => e.textContent.trim())")
    low = "all => all.map(e => e.getBoundingClientRect().height).filter(h => h < (innerWidth < 500 ? 40 : 24))"
    assert page.locator(".decisions .button").evaluate_all(low) == []  # large enough for a finger


def test_without_javascript_the_list_can_be_read(opening, path):
    page = opening(path, java_script_enabled=False)
    assert not page.locator("#bench").is_visible()
    assert list(listed(page)) == [TABLE.index[i] for i in [*WRONG, 30, 31, 32]]


def test_choices_that_the_browser_cannot_keep_are_said(opening, path, browser):
    context = browser.new_context()
    context.add_init_script("Object.defineProperty(window, 'localStorage', { get() { throw new Error('no'); } })")
    page = opening(path, context)
    assert not page.locator("#bench .caution").is_visible()
    page.get_by_role("button", name="Drop").click()
    assert progress(page) == "1 of 8 decided"
    assert page.locator("#bench .caution").is_visible()
    context.close()


def test_numbers_take_no_words(opening, tmp_path):
    v = valuation(np.linspace(-1, 1, 12))
    suspects = suspects_of(v, 3).assign(label=0, suggested=1)
    v = changed(v, ids=pd.Index(np.arange(12), name="suggested"))  # names of columns that are ours, too
    rows = (
        pd.DataFrame(np.ones((12, 201)), index=v.ids)
        .rename(columns=str)
        .rename(columns={"0": "decision", "1": "value"})
    )
    write_report(
        tmp_path / "r.html",
        v,
        rows,
        y=np.arange(12) % 2,
        suspects=errors_of(v, suspects.rename_axis("suggested"), np.arange(12) % 2),
    )
    page = opening(tmp_path / "r.html")
    assert page.get_by_text("200 of 201 columns fit into this page.").is_visible()
    assert page.locator(".claim").inner_text() == "label  0  suggested  1"
    page.get_by_label("Another label").fill("high")
    page.keyboard.press("Enter")
    assert page.locator(".refused").inner_text() == "“high” does not fit: label holds numbers."
    page.get_by_label("Another label").fill("2")
    page.keyboard.press("Enter")
    assert list(listed(page).values()) == ["→ 2", "", ""]


class TestData:
    """What the page holds, without a browser."""

    def bench(self, *arguments, **parts):
        return said("suspects", *arguments, **parts)["bench"]

    def test_nearest_rows_are_those_of_a_plain_search(self):
        v, found = make_suspects()
        bench = self.bench(v, TABLE.drop(columns="kind"), y=TABLE["kind"], suspects=errors_of(v, found, TABLE["kind"]))
        kind = TABLE["kind"].to_numpy()
        z = WRONG[3]
        near = np.argsort(np.abs(TABLE["dose"].to_numpy() - TABLE["dose"].iloc[z]), kind="stable")
        same_ward = TABLE["ward"].to_numpy() == TABLE["ward"].iloc[z]
        near = [i for i in near if same_ward[i] and i != z]
        names = np.array(bench["names"])
        _, _, _, _, own, against, alike, far = bench["suspects"][3]
        assert names[own] == TABLE.index[z]
        assert names[against].tolist() == [TABLE.index[i] for i in near if kind[i] != kind[z]][:5]
        assert len(alike) == 5
        assert 0 < far[0] < far[1]  # as the label is wrong
        assert all(kind[TABLE.index.get_loc(name)] == kind[z] for name in names[alike])

    def test_without_rows_or_with_too_many_the_neighbours_that_were_found(self, monkeypatch):
        v, found = make_suspects()
        none = self.bench(v, y=TABLE["kind"], suspects=errors_of(v, found, TABLE["kind"]))
        assert none["columns"] == []
        monkeypatch.setattr("localshapley.report.suspect_review.MAX_CELLS", 10)
        many = self.bench(v, TABLE.drop(columns="kind"), y=TABLE["kind"], suspects=errors_of(v, found, TABLE["kind"]))
        assert len(many["columns"]) == 3
        for bench in (none, many):
            assert [np.array(bench["names"])[row[5]].tolist() for row in bench["suspects"]] == [["p40"]] * 8
            assert [row[6:] for row in bench["suspects"]] == [[[], [None, None]]] * 8

    def test_numbers_have_the_digits_of_the_table(self):
        v = valuation([-1.0, 1.0, 2.0])
        rows = pd.DataFrame({"a": [17.99, 1e-7, 3.0], "b": np.array([0.1, 2, 3], dtype=np.float32), "c": [2**60, 1, 2]})
        bench = self.bench(v, rows, y=["x", "y", "y"], suspects=errors_of(v, suspects_of(v, 1), ["x", "y", "y"]))
        assert bench["cells"] == [[17.99, 0.1, str(2**60)], [1e-7, 2, "1"], [3, 3, "2"]]
        assert [scale is None for _, scale in bench["columns"]] == [False, False, True]

    def test_amounts_have_neighbours_of_one_kind_and_a_suggested_number(self):
        v = changed(valuation(np.linspace(-1, 1, 30)), score="squared_error")
        suspects = suspects_of(v, 2).assign(label=[1.5, 2.0], suggested=[2.123456789, 3.0], agreement=np.nan)
        bench = self.bench(
            v,
            pd.DataFrame({"x": np.arange(30.0)}),
            y=np.linspace(0, 9.5, 30),
            suspects=errors_of(v, suspects, np.linspace(0, 9.5, 30)),
        )
        assert bench["numbers"]
        assert bench["allowed"] == "numbers"
        v, yes = changed(v, score="accuracy"), {"label": [True, False], "suggested": [False, True]}
        flags = self.bench(v, y=np.arange(30) > 9, suspects=errors_of(v, suspects.assign(**yes), np.arange(30) > 9))
        assert (flags["allowed"], flags["labels"]) == ("known", ["True", "False"])
        assert [row[1:3] for row in bench["suspects"]] == [["1.5", "2.12346"], ["2", "3"]]
        assert [(len(row[5]), len(row[6])) for row in bench["suspects"]] == [(10, 0)] * 2

    def test_the_whole_table_counts_where_it_is_given(self):
        v, found = make_suspects()
        found = errors_of(v, found, TABLE["kind"])
        some = self.bench(v, TABLE[["dose"]], y=TABLE["kind"], suspects=found)
        whole = self.bench(v, TABLE[["dose"]], y=TABLE["kind"], suspects=found, table=TABLE)
        hidden = self.bench(v, y=TABLE["kind"], suspects=found, table=TABLE)
        assert [row[3] for row in whole["suspects"]] == [row[3] for row in hidden["suspects"]]
        assert [row[3] for row in whole["suspects"]] == [
            contents(TABLE.drop(columns="kind"))[i] for i in [*WRONG, 30, 31, 32]
        ]
        assert some["suspects"][0][3] != whole["suspects"][0][3]
        assert [name for name, _ in whole["columns"]] == ["dose", "note", "ward"]
        assert hidden["columns"] == []
        with pytest.raises(ls.errors.InvalidArgumentError, match="table must hold each valued row once"):
            self.bench(v, TABLE[["dose"]], y=TABLE["kind"], suspects=found, table=TABLE[:9])

    def test_rows_without_names_of_their_own_are_only_listed(self):
        v, _ = make_suspects()
        v = changed(v, ids=pd.Index(["same"] * N_ROWS))
        part = said("suspects", v, TABLE.drop(columns="kind").to_numpy(), suspects=errors_of(v, suspects_of(v)))
        assert part["bench"] is None
        assert "decision" not in [column["name"] for column in part["table"]["columns"]]

    def test_images_of_neighbours_are_there_while_they_fit(self, monkeypatch):
        rng = np.random.default_rng(0)
        v = valuation(np.linspace(-1, 1, 60))
        parts = {
            "y": ["a", "b"] * 30,
            "suspects": errors_of(v, suspects_of(v, 30).assign(label=["a", "b"] * 15)),
            "image_shape": (8, 8),
        }
        X = rng.random((60, 64))
        few = self.bench(v, X, **parts)
        assert len(few["images"]) == len(few["names"])
        monkeypatch.setattr("localshapley.report.suspect_review.MAX_IMAGE_BYTES", 10)
        assert self.bench(v, X, **parts)["images"] == []

    def test_five_hundred_suspects_stay_small(self):
        n, rng = 1000, np.random.default_rng(0)
        v = valuation(rng.normal(size=n))
        rows = pd.DataFrame(rng.normal(size=(n, 40)) * 1e3).assign(words=["long text " * 60] * n)
        y = rng.choice(["yes", "no"], n)
        suspects = suspects_of(v, 700).assign(label="yes")
        page = render(summarise(v, rows, y=y, suspects=errors_of(v, suspects, y)))
        assert len(page.encode()) < 2_500_000
        assert len(embedded(page)["suspects"]["suspects"]["rows"]) == 500
