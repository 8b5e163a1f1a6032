"""Pages of results are made once for the same sources and data, and again when these change or an experiment failed."""

from __future__ import annotations

import importlib
import json
import shutil
import threading
from pathlib import Path

import pandas as pd
import pytest

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
EXPERIMENT = """
import sys
out = sys.argv[sys.argv.index("--out") + 1]
print("at work")
{line}
open(out + "/noise.md", "a").write("made ")
"""


@pytest.fixture
def results(tmp_path, monkeypatch):
    """The runner, with one experiment of ours in place of the real ones."""
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    module = importlib.import_module("results")
    data = tmp_path / "data"
    data.mkdir()
    (data / "rows.csv").write_text("1,2\n")
    monkeypatch.setenv("LOCALSHAPLEY_DATA", str(data))
    keep = importlib.import_module("keep")
    monkeypatch.setattr(module, "HERE", tmp_path)
    monkeypatch.setattr(keep, "HERE", tmp_path)
    monkeypatch.setattr(keep, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(module, "EXPERIMENTS", ("noise",))
    write(tmp_path)
    return module


def write(folder, line=""):
    (folder / "noise.py").write_text(EXPERIMENT.format(line=line))


def pages(results, tmp_path, *options):
    """Number of failures, and how often the page has been made so far."""
    out = tmp_path / "pages"
    failed = results.main(["--out", str(out), "--only", "noise", *options])
    page = out / "noise.md"
    return failed, page.read_text().count("made") if page.is_file() else 0


def test_a_page_is_made_once_for_the_same_sources_and_data(results, tmp_path):
    assert pages(results, tmp_path) == (0, 1)
    assert pages(results, tmp_path) == (0, 1)
    assert pages(results, tmp_path, "--fresh") == (0, 2)
    (tmp_path / "data" / "rows.csv").write_text("1,3\n")
    assert pages(results, tmp_path) == (0, 3)
    write(tmp_path, "# another experiment")
    assert pages(results, tmp_path) == (0, 4)


def test_pages_whose_seconds_matter_run_alone(results, tmp_path, monkeypatch):
    monkeypatch.setattr(results, "EXPERIMENTS", ("noise", "scaling", "reuse"))
    monkeypatch.setattr(results.index, "write", lambda folder: None)
    running, seen = set(), {}

    def made(name, **how):
        running.add(name)
        seen[name] = set(running)
        if name in results.ALONE:
            assert running == {name}
        else:
            both.wait(timeout=60)
        running.discard(name)
        return True

    both = threading.Barrier(2)
    monkeypatch.setattr(results, "made", made)
    assert results.main(["--out", str(tmp_path / "pages"), "--jobs", "2"]) == 0
    assert next(iter(seen)) == "scaling"
    assert {"noise", "reuse"} in seen.values()  # these two were at work at the same time


def test_a_failed_experiment_is_told_and_run_again(results, tmp_path):
    write(tmp_path, "sys.exit(3)")
    assert pages(results, tmp_path) == (1, 0)
    write(tmp_path)
    assert pages(results, tmp_path) == (0, 1)
    log = (tmp_path / "pages" / "log.txt").read_text()
    assert "noise: failed with exit status 3" in log
    assert "failed: noise" in log
    assert log.count("at work") == 2


def test_the_index_has_the_numbers_of_the_tables_and_keeps_its_words(results, tmp_path):
    folder = Path(results.__file__).parents[1] / "docs" / "results"
    copy = tmp_path / "results"
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("*.png", "*.svg"))
    index = importlib.import_module("index")
    before = (copy / "index.md").read_text(encoding="utf-8")
    table = pd.read_csv(copy / "rq4_support_size.csv")
    table.loc[table["support"] == "10", "pearson"] = 0.123
    table.to_csv(copy / "rq4_support_size.csv", index=False)
    made = json.loads((copy / "gpu" / "made.json").read_text(encoding="utf-8"))
    made["cora"]["seconds"] = 60_000.0
    (copy / "gpu" / "made.json").write_text(json.dumps(made), encoding="utf-8")
    index.main(["--folder", str(copy)])
    after = (copy / "index.md").read_text(encoding="utf-8")
    assert ", 0.123, " in after
    assert "| 1000.0 |" in after
    assert (
        after.split("## Why they differ")[1].split("## How")[0]
        == before.split("## Why they differ")[1].split("## How")[0]
    )
    (copy / "index.md").write_text("# No place\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="no place for 'numbers'"):
        index.main(["--folder", str(copy)])


def test_the_index_says_by_which_commands_pages_were_made_and_how_long_they_took(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    (tmp_path / "gpu").mkdir()
    (tmp_path / "log.txt").write_text(
        '2026-11-01 10:00:00 make results RESULTS="--fresh --jobs 2": commit abc, 2 cores\n'
        "2026-11-01 10:00:01 noise: started\nat work\n"
        "2026-11-01 10:20:00 make results: commit abc, 2 cores\n"
        "2026-11-01 10:40:20 noise: made after 1,200 s\n"
    )
    (tmp_path / "gpu" / "log.txt").write_text(
        '2026-11-02 10:00:00 make results-gpu RESULTS="--fresh": commit abc, 2 cores\n'
        "2026-11-02 10:09:58 done, 5 of 5\n"
    )
    here, gpu = importlib.import_module("index").runs(tmp_path)
    assert here.startswith(
        '- `make results RESULTS="--fresh --jobs 2"`, then `make results`: 01 November 2026, 40 minutes'
    )
    assert gpu.startswith('- `make results-gpu RESULTS="--fresh"`: 02 November 2026, 10 minutes')
    assert gpu.endswith("([its log](gpu/log.txt)).")


def test_the_log_begins_with_the_command(results, tmp_path):
    pages(results, tmp_path)
    log = (tmp_path / "pages" / "log.txt").read_text()
    assert f'make results RESULTS="--out {tmp_path / "pages"} --only noise": commit ' in log.splitlines()[0]
    assert results.named(["--gpu", "--fresh"]) == 'make results-gpu RESULTS="--fresh"'
    assert results.named([]) == "make results"


def test_it_is_written_down_how_a_page_was_made(results, tmp_path):
    pages(results, tmp_path)
    made = json.loads((tmp_path / "pages" / "made.json").read_text())["noise"]
    assert set(made) == {"key", "commit", "date", "machine", "seconds"}
    assert made["key"] == results.fingerprint("noise", [])
    assert made["key"] != results.fingerprint("noise", ["--quick"])
