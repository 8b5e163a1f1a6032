"""The files that commands write: never those that they read, and a disk that is full does not take the result."""

from __future__ import annotations

import json
import os
import shutil

import numpy as np
import pandas as pd
import pytest
from markupsafe import escape

import localshapley as ls
from cli.deciding import decide

pytestmark = pytest.mark.quick

WHERE = ("t.csv", "-t", "kind", "--id", "id")
HEAD = "id;zip;size;kind;row;who"


@pytest.fixture
def lines(tmp_path, monkeypatch):
    """Forty rows in `t.csv` with semicolons, as somebody else wrote them."""
    rng = np.random.default_rng(0)
    made = [
        f"{319 + i:05};{370 + i % 5:05};{rng.normal(4 * (i % 2)):.2f};{'grün' if i % 2 else 'rot'};{i % 7}.10;w{i % 3}"
        for i in range(40)
    ]
    (tmp_path / "t.csv").write_bytes("\r\n".join([HEAD, *made, ""]).encode("latin-1"))
    monkeypatch.chdir(tmp_path)
    return made


LATIN = ("--encoding", "latin-1")


class TestWhatWouldBeDestroyed:
    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["value", *WHERE, "--out", "t.csv"], "--out t.csv is also the table, and would overwrite it"),
            (["value", *WHERE, "--out", "./same/../t.csv"], "is also the table"),
            (["value", *WHERE, "--out", "linked.csv"], "--out linked.csv is also the table"),
            (["value", *WHERE, "--report", "t.csv"], "--report t.csv is also the table"),
            (["value", *WHERE, "--store", "t.csv"], "--store t.csv is also the table"),
            (["value", *WHERE, "--test", "y.csv", "--out", "y.csv"], "--out y.csv is also --test"),
            (["value", *WHERE, "--out", "a.csv", "--report", "a.csv"], "--report a.csv is also --out"),
            (["value", *WHERE, "--report", "r.pdf"], "--report must end in .html"),
            (
                ["value", "same", "-t", "kind", "--test", "y.csv", "--out", "same/v.parquet"],
                "is in the table, the fold",
            ),
            (["suspects", *WHERE, "--out", "t.csv"], "--out t.csv is also the table"),
            (["suspects", *WHERE, "--report", "t.csv"], "--report t.csv is also the table"),
            (["suspects", *WHERE, "--values", "v.parquet", "--out", "v.parquet"], "--out v.parquet is also --values"),
            (["suspects", *WHERE, "--out", "s.xls"], "s.xls must end in one of"),
            (["select", *WHERE, "-n", "5", "--out", "t.csv"], "--out t.csv is also the table"),
            (["report", "v.parquet", "--train", "t.csv", "-o", "t.csv"], "--out t.csv is also --train"),
            (["report", "v.parquet", "-o", "v.parquet"], "--out v.parquet is also the values"),
            (["report", "v.parquet", "-o", "r.md"], "--out must end in .html"),
            (["apply", "t.csv", "y.csv", "-t", "kind", "-o", "y.csv", "--force"], "--out y.csv is also the decisions"),
            (["compare", "v.png", "y.csv", "--picture", "v.png"], "--picture v.png is also the first values"),
        ],
        ids=lambda given: " ".join(given) if isinstance(given, list) else None,
    )
    def test_is_refused_before_any_work(self, command, lines, tmp_path, monkeypatch, words, message):
        (tmp_path / "same").mkdir()
        for name in ("y.csv", "v.parquet", "v.png"):
            shutil.copy("t.csv", name)
        (tmp_path / "linked.csv").symlink_to(tmp_path / "t.csv")
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
        monkeypatch.setattr(ls, "value", None)
        done = command(*words)
        assert (done.status, done.stdout) == (2, "")
        assert done.stderr.startswith("error: ")
        assert message in done.stderr
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before

    def test_an_earlier_result_is_written_again(self, command, lines):
        for _ in range(2):
            assert command("value", *WHERE, *LATIN, "--out", "v.csv", "--report", "r.htm", "--no-curves").status == 0

    def test_the_data_of_a_report_replaces_only_what_a_report_said(self, command, lines, tmp_path):
        assert command("value", *WHERE, *LATIN, "--out", "v.parquet").status == 0
        (tmp_path / "mine.json").write_text('{"mine": 1}')
        done = command("report", "v.parquet", "--data", "-o", "mine.html")
        assert done.status == 1
        assert "--data would replace mine.json" in done.stderr
        assert (tmp_path / "mine.json").read_text() == '{"mine": 1}'
        for _ in range(2):
            assert command("report", "v.parquet", "--data", "-o", "other.html").status == 0
        assert json.loads((tmp_path / "other.json").read_text())["title"] == "Data valuation"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no disk that is always full")
class TestAFullDisk:
    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["value", *WHERE, *LATIN, "--out", "full.csv"], "Worst"),
            (["value", *WHERE, *LATIN, "--report", "full.html", "--no-curves"], "Worst"),
            (["suspects", *WHERE, *LATIN, "-n", "5", "--out", "full.csv"], "the 5 most suspicious"),
            (["suspects", *WHERE, *LATIN, "-n", "5", "--report", "full.html"], "the 5 most suspicious"),
            (["select", *WHERE, *LATIN, "-n", "5", "--out", "full.tsv"], "5 of 40 rows"),
        ],
        ids=lambda given: " ".join(given) if isinstance(given, list) else None,
    )
    def test_the_result_is_printed_and_the_file_named(self, command, lines, tmp_path, words, said):
        name = next(word for word in words if word.startswith("full"))
        (tmp_path / name).symlink_to("/dev/full")
        done = command(*words)
        assert done.status == 1
        assert said in done.stdout
        assert "Wrote" not in done.stdout
        assert f"error: {name} cannot be written: No space left on device" in done.stderr

    def test_a_report_of_saved_values_is_named(self, command, lines, tmp_path):
        assert command("value", *WHERE, *LATIN, "--out", "v.parquet").status == 0
        (tmp_path / "full.html").symlink_to("/dev/full")
        done = command("report", "v.parquet", "-o", "full.html")
        assert (done.status, done.stdout) == (1, "")
        assert "error: full.html cannot be written: No space left on device" in done.stderr

    def test_documents_name_only_what_was_written(self, command, lines, tmp_path):
        (tmp_path / "full.csv").symlink_to("/dev/full")
        done = command("value", *WHERE, *LATIN, "--out", "full.csv", "--json")
        assert done.status == 1
        document = json.loads(done.stdout)
        assert document["files"] == {}
        assert len(document["rows"]) == 40


@pytest.mark.parametrize(
    ("shape", "message"),
    [("4x4", "--image-shape 4x4 does not fit the 2 columns"), ("1x2x7", "does not fit"), ("2", "does not fit")],
)
def test_images_that_do_not_fit_are_refused_before_valuing(command, tmp_path, monkeypatch, shape, message):
    pd.DataFrame({"a": range(9), "b": range(9), "kind": list("xyz") * 3}).to_csv(tmp_path / "t.csv", index=False)
    monkeypatch.setattr(ls, "value", None)
    done = command("value", "t.csv", "-t", "kind", "--report", "r.html", "--image-shape", shape)
    assert done.status == 2
    assert message in done.stderr
    words = command("value", "t.csv", "-t", "b", "--report", "r.html", "--image-shape", "1x2")
    assert "the column 'kind' of t.csv holds no numbers" in words.stderr


class TestRowsThatAreChosen:
    @pytest.mark.parametrize("named", [True, False])
    def test_are_as_they_are_in_the_table(self, answer, lines, tmp_path, named):
        where = WHERE if named else WHERE[:-2]
        how = ["--owner", "who", "--drop", "zip", *LATIN]
        found = answer("select", *where, *how, "-n", 6, "--out", "few.csv")["selected"]
        places = [int(row["id"]) - 319 if named else row["row"] for row in found]
        expected = [HEAD, *(lines[place] for place in places), ""]
        assert (tmp_path / "few.csv").read_bytes().decode("latin-1").split("\r\n") == expected

    def test_are_found_beside_rows_without_a_target(self, answer, lines, tmp_path):
        kept = ";".join(["00001", "00370", "1.00", "", "0.10", "w0"])
        text = "\r\n".join([HEAD, kept, *lines])  # the last line has no end
        (tmp_path / "t.csv").write_bytes(text.encode("latin-1"))
        more = ["--drop-missing-target", *LATIN]
        chosen = [row["id"] for row in answer("select", *WHERE, *more, "-n", 40, "--out", "few.csv")["selected"]]
        written = (tmp_path / "few.csv").read_bytes().decode("latin-1").split("\r\n")
        assert [line.split(";")[0] for line in written] == ["id", *chosen, ""]
        assert sorted(written[1:-1]) == lines

    def test_of_another_format_have_all_columns_in_their_order(self, answer, lines, tmp_path):
        found = answer("select", *WHERE, "--drop", "zip", "-n", 6, "--out", "few.parquet", *LATIN)["selected"]
        written = pd.read_parquet(tmp_path / "few.parquet")
        assert list(written.columns) == HEAD.split(";")
        assert written["id"].tolist() == [row["id"] for row in found]
        assert written["zip"].iloc[0] == int(lines[int(found[0]["id"]) - 319].split(";")[1])

    def test_of_parquet_stay_parquet(self, answer, tmp_path):
        table = pd.DataFrame({"a": np.arange(40, dtype=np.int8), "kind": pd.Categorical(list("xy") * 20)})
        table.to_parquet(tmp_path / "t.parquet")
        places = [r["row"] for r in answer("select", "t.parquet", "-t", "kind", "-n", 5, "-o", "o.parquet")["selected"]]
        pd.testing.assert_frame_equal(
            pd.read_parquet(tmp_path / "o.parquet"), table.iloc[places].reset_index(drop=True)
        )


def test_a_feature_may_be_named_row(answer, lines, tmp_path):
    where = [*WHERE[:-2], *LATIN]
    answer("suspects", *where, "-n", 3, "--out", "s.csv")
    listed, table = pd.read_csv(tmp_path / "s.csv"), pd.read_csv("t.csv", encoding="latin-1", sep=";")
    assert listed.columns[0] == "row"  # ours, as in the lists of other commands
    assert listed["row_in_table"].tolist() == table["row"].iloc[listed["row"]].tolist()
    answer("value", *where, "--out", "v.parquet")
    answer("report", "v.parquet", "--train", "t.csv", "-t", "kind", *LATIN)


def test_very_many_columns_bring_no_warning(command, tmp_path, recwarn):
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 1500)).round(2)).add_prefix("c")
    table.assign(kind=list("xy") * 15).to_csv(tmp_path / "t.csv", index=False)
    assert command("suspects", "t.csv", "-t", "kind", "-n", 3, "--no-check", "-o", "s.csv").status == 0
    assert not [warning for warning in recwarn if "fragmented" in str(warning.message)]


def test_the_command_in_a_report_reads_the_file_as_the_run_did(command, answer, lines, tmp_path):
    text = (tmp_path / "t.csv").read_bytes().replace(b";", b"^")
    (tmp_path / "t.csv").write_bytes(text.replace(b"rot", b"None"))
    how = [*LATIN, "--sep", "^", "--na", ""]
    told = "localshapley apply t.csv decisions.csv --target kind --id id --encoding latin-1 --sep '^' --na '' --out "
    answer("suspects", *WHERE, *how, "-n", 4, "--report", "r.html")
    assert escape(told) in (tmp_path / "r.html").read_text()
    answer("value", *WHERE, *how, "--out", "v.parquet")
    answer("report", "v.parquet", "--train", "t.csv", "-t", "kind", *how, "--data")
    assert json.loads((tmp_path / "report.json").read_text())["sections"]["suspects"]["command"].startswith(told)
    decide(tmp_path / "r.html", tmp_path / "d.csv", lambda *_: ("drop", ""))
    answer("apply", "t.csv", "d.csv", "-t", "kind", "--id", "id", *how, "--out", "o.csv")
    assert len((tmp_path / "o.csv").read_bytes().split()) == 37
