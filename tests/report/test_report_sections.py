"""What each section says."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import localshapley as ls
from localshapley.audit import Mending
from localshapley.report import SECTIONS, render, summarise
from localshapley.report.charts import round_step
from localshapley.report.html_tables import with_error
from localshapley.valuation import Skill
from made import changed, made
from report.parts import OWNERS, Outline, embedded, errors_of, gap_of, said, suspects_of, valuation


def test_headline_counts_rows_that_hurt_beyond_doubt():
    v = valuation([-1.0, -1.0, 2.0, 0.0], [0.1, 0.9, 0.1, 0.0])
    summary = summarise(v, suspects=errors_of(v, suspects_of(v, 3)))
    headline = [line for s in SECTIONS if s.id in summary["sections"] for line in s.headline(summary["sections"][s.id])]
    assert headline == [
        ("3", "of 4 labels look wrong (75.0\N{NO-BREAK SPACE}%)"),
        ("1", "of 4 rows make predictions worse: their value is below zero beyond doubt"),
    ]
    page = render(summary)
    assert "2 of 4 rows are below zero, 1 of them beyond doubt" in page
    assert all(f"<li><strong>{number}</strong>{words}</li>" in page for number, words in headline)


def test_headline_leads_with_the_rows_that_other_test_rows_would_leave_below_zero():
    columns = np.array([[0.1, -0.1], [0.9, -0.9], [0.1, -0.1], [0.0, 0.0]], dtype=np.float32)
    v = valuation([-9.0, -1.0, 2.0, 0.0], spread_tests=columns)
    summary = summarise(v, suspects=errors_of(v, suspects_of(v, 3)))
    headline = SECTIONS[0].headline(summary["sections"]["findings"])
    assert headline[0] == ("1", "of the 2 rows below zero would still be below zero with other test rows (95 %)")
    assert headline[1][1].startswith("of 4 labels look wrong")
    share = 100 * np.linalg.norm(columns) / np.linalg.norm(v.values)
    assert any(f"are {share:.0f} % of the values" in limit for limit in said("limits", v)["limits"])


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60))
def test_the_histogram_counts_every_row_on_its_side_of_zero(values):
    values = np.array(values)
    histogram = said("values", valuation(values))["histogram"]
    counts, edges = np.array(histogram["counts"]), np.array(histogram["edges"])
    assert counts.sum() == len(values)
    assert len(edges) == len(counts) + 1 <= 45
    assert counts[edges[1:] <= 0].sum() == (values < 0).sum()


@given(st.floats(1e-12, 1e12), st.integers(1, 50))
def test_round_steps_are_round_and_as_many_as_asked(span, n):
    step = round_step(span, n)
    assert float(f"{step:.0e}") == pytest.approx(step)
    assert f"{step:.0e}"[0] in "125"
    assert n * 0.39 <= span / step <= n * 1.01


def test_error_bars_where_sampled_and_words_where_exact(exact, sampled):
    assert "so there are no error bars" in render(summarise(changed(exact, spread_tests=None)))
    assert "std. error" not in render(summarise(exact))
    assert all("Lines are 95 % intervals" in render(summarise(v)) for v in (exact, sampled))
    assert "std. error" in render(summarise(sampled))
    best = said("extremes", sampled)["ranking"][0]
    row = int(np.argmax(sampled.values))
    assert best["row"] == str(row)
    assert best["high"] == pytest.approx(sampled.interval()[1][row], rel=1e-3)
    assert best["high"] > sampled.values[row] + 1.96 * sampled.stderr[row]


def test_no_suspects_is_a_finding(exact):
    page = render(summarise(exact, suspects=errors_of(exact, suspects_of(exact).iloc[:0])))
    assert "No suspects were found." in page
    assert "No label looks wrong." in page
    assert "There is no label to mend." in page


def test_values_by_class_are_those_of_the_rows(exact, iris):
    names = np.array(["zero", "one", "two"])[iris.y]
    table = said("classes", exact, y=names)["table"]
    for label, n, below, total, mean, *quantiles in table["rows"]:
        own = exact.values[names == label]
        assert (n, below) == (len(own), (own < 0).sum())
        assert [total, mean, *quantiles] == pytest.approx(
            [own.sum(), own.mean(), *np.quantile(own, [0.1, 0.5, 0.9])], rel=1e-3, abs=1e-4
        )
    assert {row[0] for row in table["rows"]} == {"zero", "one", "two"}
    measured = summarise(exact, y=np.linspace(0, 1, len(exact.values)))["sections"]
    assert "classes" not in measured
    assert measured["rows"]["table"]["columns"][3]["kind"] == "number"


def test_where_no_value_is_below_zero_the_headline_counts_those_above():
    v = changed(made([1.0, 2.0]), spread_tests=np.full((2, 4), 0.001))
    assert "of the 2 rows above zero would still be above zero with other test rows (95 %)" in render(summarise(v))


def test_owners_without_shares_are_drawn_by_value(exact):
    nothing = OWNERS.assign(share=np.nan, share_stderr=np.nan)
    page = render(summarise(exact, owners=nothing))
    assert "3.00 ± 0.10" in page
    assert "75.0 ± 2.0 %" in render(summarise(exact, owners=OWNERS))


def test_what_follows_plus_or_minus_is_one_standard_error_and_intervals_have_ends(sampled, iris):
    suspects = suspects_of(sampled, n=5)
    summary = summarise(sampled, iris.X, y=iris.y, owners=OWNERS, suspects=errors_of(sampled, suspects, iris.y))
    page = render(summary)
    table = summary["sections"]["owners"]["table"]
    assert [column["name"] for column in table["columns"]][-2:] == ["share in %", "std. error of share"]
    assert {"75.0 ± 2.0 %", "25.0 ± 2.0 %"} <= set(re.findall(r"[\d.]+ ± [\d.]+ %", page))
    assert "Lines are 95 % intervals; ± is one standard error." in page
    harm = summary["sections"]["findings"]["harm"]
    assert f"{harm['sum']:.4g} ± {harm['stderr']:.3g}, one standard error" in page
    best = summary["sections"]["extremes"]["ranking"][0]
    written = re.search(r">([\d.]+) \(([-\d.]+) to ([-\d.]+)\)<", page)
    assert [float(x) for x in written.groups()] == pytest.approx([best["value"], best["low"], best["high"]], abs=0.1)


class TestOwnersAsPlayers:
    def test_they_are_never_called_rows(self, iris):
        owner = np.arange(len(iris.y)) % 8
        v = ls.value(iris.X, iris.y, iris.X_test, iris.y_test, model="tree", owners=owner, method="sample", tol=0.5)
        page = render(summarise(v, gap=gap_of(v)))
        words = re.sub("<[^>]+>", " ", page[: page.index('<script type="application/json"')])
        assert "training row" not in re.sub("copy of a training row|equals row", "", words)
        assert "Best and worst owners" in words
        assert "Each bar counts the owners in a range of values." in words
        assert "What each owner is worth, valued as a whole." in words
        assert "single row" not in words
        assert "All owners" in words

    def test_they_have_shares(self, iris):
        owner = np.arange(len(iris.y)) % 4
        v = ls.value(iris.X, iris.y, iris.X_test, iris.y_test, model="knn", owners=owner)
        table = said("owners", v)["table"]
        share = [row[-2] for row in table["rows"]]
        assert share == pytest.approx(100 * np.sort(v.values)[::-1] / v.values.sum(), rel=1e-3)

    def test_errors_of_shares_that_nobody_knows_are_left_out(self, iris):
        owner = np.arange(len(iris.y)) % 4
        rows = iris.X, iris.y, iris.X_test, iris.y_test
        v = ls.value(*rows, model="knn", owners=owner, method="global-mc", budget=60)
        page = render(summarise(v))
        best = int(np.argmax(v.values))
        assert with_error(v.values[best], v.stderr[best]) in page
        assert not re.findall(r"± [\d.]+ %", page)


def test_rows_are_in_order_and_complete(sampled, iris):
    summary = summarise(sampled, iris.X, y=iris.y)["sections"]
    assert [row[0] for row in summary["extremes"]["worst"]["rows"]] == [str(i) for i in sampled.bottom(10).index]
    assert [row[0] for row in summary["extremes"]["best"]["rows"]] == [str(i) for i in sampled.top(10).index]
    rows = summary["rows"]["table"]["rows"]
    assert [row[0] for row in rows] == [str(i) for i in sampled.bottom(len(rows)).index]
    assert (np.diff(sampled.bottom(len(rows))["value"]) >= -1e-12).all()
    assert len(rows) == len(sampled.values)
    names = [column["name"] for column in summary["rows"]["table"]["columns"]]
    assert names == ["row", "value", "std. error", "test rows", "label", *(f"column {i}" for i in range(4))]
    for row in rows:
        i = int(row[0])
        assert row[1] == pytest.approx(sampled.values[i], abs=5e-5)
        assert row[3:5] == [sampled.n_tests[i], iris.y[i]]
        assert row[5:] == pytest.approx(iris.X[i].tolist(), abs=5e-4)


def test_of_more_rows_the_lowest_and_the_highest_are_kept():
    values = np.random.default_rng(0).permutation(12_000) - 5_000.0
    page = render(summarise(valuation(values)))
    kept = [row[1] for row in embedded(page)["rows"]["rows"]["rows"]]
    assert kept == [*range(-5000, 0), *range(2000, 7000)]
    assert "Of 12,000 rows, the 10,000 with the lowest and highest values are shown." in page


def test_costs_of_any_size_are_drawn(exact):
    levels = ls.plan(*[np.zeros((2, 1)), [0, 1]] * 2, model="knn").levels
    huge = replace(levels, global_=2**20_000, local=0)
    summary = summarise(exact, levels=huge)
    levels = summary["sections"]["cost"]["levels"]
    assert levels[0][1] == "4.0 × 10⁶⁰²⁰ trainings"
    assert levels[0][2] == pytest.approx(20_000 * np.log10(2))
    assert "would take 4.0 × 10⁶⁰²⁰ trainings, a number of 6,021 digits." in render(summary)


def test_support_sizes_and_reach_are_counted(exact):
    summary = summarise(changed(exact, support_sizes=np.array([3, 3, 5, 9])))
    supports = summary["sections"]["supports"]
    assert supports["supports"] == {"counts": [2, 0, 1, 0, 0, 0, 1], "edges": [3, 4, 5, 6, 7, 8, 9, 10]}
    assert sum(supports["reach"]["counts"]) == len(exact.values)
    many = said("supports", changed(exact, support_sizes=np.arange(1000)))["supports"]
    assert len(many["counts"]) <= 40
    assert sum(many["counts"]) == 1000
    assert "<title>3: 2 test rows</title>" in render(summary)
    assert "Every support has 7 rows" in render(summarise(changed(exact, support_sizes=np.array([7, 7]))))


def test_the_locality_check_says_how_many_rows_it_draws():
    few, many = (valuation(np.arange(n) - 50.0) for n in (150, 300))
    assert "are drawn" not in render(summarise(few, gap=gap_of(few)))
    page = render(summarise(many, gap=gap_of(many)))
    assert "Of 300 rows, the 200 whose global values are furthest from zero are drawn." in page
    assert [row[0] for row in embedded(page)["locality"]["gap"]["rows"]] == [str(i) for i in range(100, 300)]


def limits(*arguments, **parts):
    return said("limits", *arguments, **parts)["limits"]


def test_limits_say_what_applies(exact, sampled):
    few = changed(exact, support_sizes=exact.support_sizes[:12])
    assert any("only 12 test rows" in limit for limit in limits(few))
    assert any("estimates" in limit for limit in limits(sampled))
    assert not any("estimates" in limit for limit in limits(exact))
    assert any("not measured" in limit for limit in limits(exact))
    found = limits(exact, gap=gap_of(exact, enough=False))
    assert any("found a gap" in limit for limit in found)
    n = int((exact.n_tests == 0).sum())
    assert any(limit.startswith(f"{n} rows are in no support") for limit in found) == (n > 0)


@pytest.mark.parametrize("is_random", [False, True])
def test_random_models_are_told_by_what_they_are_and_not_by_name(exact, is_random):
    v = changed(exact, model="RandomForestClassifier()", is_random=is_random)
    assert any("another seed gives other values" in limit for limit in limits(v)) == is_random


def test_what_the_tasks_return_is_shown(sampled, iris):
    found = ls.audit.label_errors(iris.X, iris.y, values=sampled)
    owners = ls.tasks.owners(sampled, np.array(["north", "south"])[iris.y % 2])
    shares = {"shares": [0.5, 0.9], "n_seeds": 2}
    curves = ls.tasks.curves(sampled, iris.X, iris.y, iris.X_test, iris.y_test, model="knn", **shares)
    summary = summarise(sampled, iris.X, y=iris.y, suspects=found, owners=owners, curves=curves)
    sections = summary["sections"]
    assert [row[0] for row in sections["suspects"]["table"]["rows"]] == [str(i) for i in found.table.index]
    assert sum(row[4] for row in sections["owners"]["table"]["rows"]) == pytest.approx(100, abs=0.1)
    assert len(sections["curves"]["table"]["rows"]) == len(curves.table)
    assert Outline(render(summary)).open == []


GOOD = Skill("accuracy", model=0.9, guess=0.6, stderr=0.02, n_tests=100, constant="<b>a")
MENDING = Mending("accuracy", 0.9, 0.93, 0.01, 0.95, 0.02, 100)


class TestFindings:
    def test_how_good_the_model_is_beside_the_majority(self, exact):
        page = render(summarise(changed(exact, skill=GOOD)))
        assert "gets 90.0\N{NO-BREAK SPACE}% of 100 held-out rows right" in page
        assert "&lt;b&gt;a”, the most frequent label, would get 60.0\N{NO-BREAK SPACE}%." in page
        assert "no clear lead" not in page
        assert "no clear lead" in render(summarise(changed(exact, skill=replace(GOOD, model=0.62))))
        assert "held-out rows right" not in render(summarise(changed(exact, skill=None)))
        numbers = Skill("r2", model=0.4, guess=0.0, stderr=0.1, n_tests=70, constant="the mean")
        assert "avoids 40.0\N{NO-BREAK SPACE}% of the squared error" in render(summarise(changed(exact, skill=numbers)))

    def test_what_mending_brings_is_measured_or_estimated(self, exact):
        suspects = suspects_of(exact)
        estimate = render(summarise(exact, suspects=errors_of(exact, suspects)))
        assert f"add up to {suspects['value'].sum():.4g}" in estimate
        assert "estimate" in estimate
        measured = render(summarise(exact, suspects=errors_of(exact, suspects), mending=MENDING))
        assert (
            "accuracy changes by +3.0 points (95 % interval +1.0 to +5.0) without these rows, and by +5.0" in measured
        )
        assert "Expect less than this on others." in measured
        assert "add up to" not in measured.split("values")[0]

    def test_a_change_that_may_be_chance_is_no_gain(self, exact):
        v, unsure = changed(exact, skill=GOOD), replace(MENDING, dropped=0.91, relabelled=0.92, apart=True)
        unsure = replace(unsure, unsuspected=replace(unsure, n_tests=80))
        summary = summarise(v, suspects=errors_of(v, suspects_of(v)), mending=unsure)
        page = render(json.loads(json.dumps(summary)))
        assert "acting on the list makes no measurable difference: accuracy changes by +1.0 points" in page
        assert "<strong>no sure change</strong>of accuracy with the suggested labels" in page
        assert "On the 80 of them that most lists made for this do not suspect, the changes are +1.0 points and" in page
        assert "Expect less" not in page

    def test_suspects_by_class_and_owner(self, exact):
        v = changed(exact, skill=GOOD)
        y = np.array(["a", "b"] * 60)[: len(v.values)]
        low = v.bottom(4).index
        suspects = suspects_of(v).assign(label=y[low])
        owner = np.where(np.isin(np.arange(len(y)), low[:3]), "north", "south")
        found = said("findings", v, y=y, suspects=errors_of(v, suspects, y), owner=owner)
        assert sum(row[1] for row in found["classes"]["rows"]) == 4
        assert "Ask “north” first: 3 of the 4 suspected rows are from there." in found["advice"]
        table = said("suspects", v, y=y, suspects=errors_of(v, suspects, y), owner=owner, target="species")["table"]
        names = [column["name"] for column in table["columns"]]
        assert names[:6] == ["row", "decision", "suspicion", "species", "suggested", "agreement"]
        assert sorted(row[names.index("owner")] for row in table["rows"]) == ["north", "north", "north", "south"]

    def test_all_columns_of_suspects_are_there_and_most_can_be_chosen(self, exact):
        rows = np.zeros((len(exact.values), 40))
        heads = said("suspects", exact, rows, suspects=errors_of(exact, suspects_of(exact)))["table"]["columns"]
        extra = {head["name"] for head in heads if "extra" in head}
        assert {head["name"] for head in heads} >= {f"column {i}" for i in range(40)}
        assert extra == {f"column {i}" for i in range(6, 40)} | {"neighbours against"}

    def test_cautions_are_told_with_what_to_do(self, exact):
        v = changed(exact, skill=replace(GOOD, model=0.61))
        found = said("findings", v, suspects=errors_of(v, suspects_of(v)))
        assert found["cautions"][0].startswith("The model is no better than a constant guess")
        assert found["advice"][0].startswith("Do not change labels by this list alone.")
        assert said("findings", exact, suspects=errors_of(exact, suspects_of(exact)))["cautions"] == []

    def test_a_measured_change_is_no_gain_where_caution_is_due(self, exact):
        for accuracy, n_lines in ((0.9, 1), (0.61, 0)):
            v = changed(exact, skill=replace(GOOD, model=accuracy))
            page = render(summarise(v, suspects=errors_of(v, suspects_of(v)), mending=MENDING))
            assert page.count("<strong>+5.0 points</strong>") == n_lines
            assert ("Do not read that change as a gain" in page) == (n_lines == 0)

    def test_numbers_are_not_called_labels(self, exact):
        v = changed(exact, score="squared_error", skill=None)
        suspects = suspects_of(v).assign(label=1.5, suggested=2.5).drop(columns="agreement")
        found = said(
            "findings",
            v,
            y=np.linspace(0, 1, len(v.values)),
            suspects=errors_of(v, suspects, np.linspace(0, 1, len(v.values))),
            target="price",
        )
        assert found["found"][0] == f"4 of {len(v.values)} numbers in “price” look wrong: these rows do harm."
        assert found["classes"] is None


class TestCopies:
    def test_groups_and_outliers_with_a_sentence_each(self, exact, iris):
        X, y = iris.X.copy(), iris.y.copy()
        X[7], y[7], X[20] = X[3], 2, 40
        found = ls.audit.copies(X, y, iris.X_test, iris.y_test)
        summary = summarise(exact, copies=found, target="<b>kind")
        part = summary["sections"]["copies"]
        assert part["lines"] == list(found.lines.values())
        names = [column["name"] for column in part["table"]["columns"]]
        assert names == ["group", "row", "part", "copy", "<b>kind", "labels differ"]
        assert [row[1] for row in part["table"]["rows"]] == [str(row) for row in found.groups["row"]]
        assert [row[0] for row in part["outliers"]["rows"]] == ["20"]
        page = render(json.loads(json.dumps(summary)))
        assert "Rows that are there twice" in page
        assert "Rows far from all others" in page
        assert Outline(page).open == []

    def test_there_is_no_section_where_nothing_was_found(self, exact):
        rows = np.random.default_rng(0).normal(size=(40, 3))
        assert "copies" not in summarise(exact, copies=ls.audit.copies(rows))["sections"]
        assert "copies" not in summarise(exact)["sections"]

    def test_rows_that_are_equal_by_chance_are_not_listed(self, exact):
        coarse = ls.audit.copies(np.random.default_rng(0).integers(0, 3, size=(200, 3)))
        page = render(summarise(exact, copies=coarse))
        assert "chance brings about as many: these are no copies." in page
        assert "Rows that are there twice" not in page
