"""The files around the package agree with each other: versions, workflows, forms, targets of make."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from test_public_pages import rows_of

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]


def page(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_page_of_versions_has_the_bounds_of_the_package():
    extras = [("plots", "matplotlib (extra `plots`)"), ("polars", "polars (extra `polars`)")]
    titles = {Requirement(PROJECT["optional-dependencies"][extra][0]).name: title for extra, title in extras}
    lines = [
        *PROJECT["dependencies"],
        *(line for extra, _ in extras for line in PROJECT["optional-dependencies"][extra]),
    ]
    expected = {}
    for one in map(Requirement, lines):
        for place, python in enumerate(PYTHONS):
            if one.marker is None or one.marker.evaluate({"python_version": python}):
                row = expected.setdefault(titles.get(one.name, one.name), [None] * len(PYTHONS))
                assert row[place] is None, f"two bounds of {one.name} for Python {python}"
                row[place] = str(one.specifier).removeprefix(">=")
    assert {name: row for name, *row in rows_of(page("docs/contributing/versions.md"), "", *PYTHONS)} == expected


def test_the_same_pythons_everywhere():
    workflow = yaml.safe_load(page(".github/workflows/tests.yml"))
    assert workflow["jobs"]["pythons"]["strategy"]["matrix"]["python"] == PYTHONS
    assert re.findall(r'"(3\.\d+)"', re.search(r"^PYTHONS = .*$", page("noxfile.py"), re.MULTILINE)[0]) == PYTHONS
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"
    classifiers = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)]
    assert classifiers == PYTHONS[: len(classifiers)]


def test_tests_are_collected_without_what_the_quick_ones_do_not_install():
    """One import of PyTorch at the top of a file would end `make test-pythons` before its first test."""
    extras = PROJECT["optional-dependencies"]
    lines = [*PROJECT["dependencies"], *(line for extra in ("plots", "polars") for line in extras[extra])]
    installed = {Requirement(line).name.replace("scikit-learn", "sklearn") for line in lines}
    own = {"localshapley", "tests", "run_pages", "markupsafe", "pytest", "hypothesis", "packaging"} | {
        one.stem for one in (ROOT / "tests").glob("*")
    }
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        skips = set[str]()
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            skips |= set(re.findall(r"importorskip\(['\"](\w+)", ast.unparse(node)))
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            needed = {name.partition(".")[0] for name in names} - sys.stdlib_module_names - installed - own
            assert needed <= skips, f"{file.relative_to(ROOT)} needs {', '.join(needed - skips)}"


@pytest.mark.parametrize("name", ["tests", "docs", "release"])
def test_workflows_call_targets_of_make_that_exist(name):
    targets = set(re.findall(r"^([a-z-]+):", page("Makefile"), re.MULTILINE))
    jobs = yaml.safe_load(page(f".github/workflows/{name}.yml"))["jobs"]
    steps = [step.get("run", "").split() for job in jobs.values() for step in job["steps"]]
    called = [words for words in steps if words[:1] == ["make"]]
    assert called
    assert {words[1] for words in called} <= targets


def test_only_the_publishing_job_of_a_release_may_speak_for_the_project():
    release = yaml.safe_load(page(".github/workflows/release.yml"))
    assert release["permissions"] == {"contents": "read"}
    assert [name for name, job in release["jobs"].items() if "permissions" in job] == ["publish"]
    assert release["jobs"]["publish"]["permissions"] == {"id-token": "write"}
    assert "secrets." not in page(".github/workflows/release.yml")


@pytest.mark.parametrize("name", ["bug", "idea"])
def test_forms_for_issues_ask_for_something(name):
    form = yaml.safe_load(page(f".github/ISSUE_TEMPLATE/{name}.yml"))
    assert {"name", "description", "body"} <= set(form)
    fields = [field["id"] for field in form["body"]]
    assert len(fields) == len(set(fields))
    assert any(field["validations"]["required"] for field in form["body"] if "validations" in field)


def test_hooks_before_a_commit_are_those_of_make_lint():
    (local,) = yaml.safe_load(page(".pre-commit-config.yaml"))["repos"]
    lint = page("Makefile").split("\nlint:")[1].split("\n\n")[0]
    for hook in local["hooks"]:
        assert hook["entry"].removesuffix(" --fix") in lint


def test_a_table_over_commits_shows_ratios_and_what_failed():
    spec = spec_from_file_location("over_commits", ROOT / "benchmarks" / "over_commits.py")
    module = sys.modules["over_commits"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    old, new = (module.Commit(name, f"about {name}", Path(name)) for name in ("aaa", "bbb"))
    seconds = {(old, "knn"): 0.2, (new, "knn"): 0.3, (old, "svm"): float("inf"), (new, "svm"): 1.0}
    head, first, second = module.as_text([old, new], ["knn", "svm"], seconds).splitlines()
    assert head.split() == ["seconds", "knn", "svm"]
    assert first.split() == ["aaa", "0.200", "(1.00)", "failed", "about", "aaa"]
    assert second.split() == ["bbb", "0.300", "(1.50)", "1.000", "about", "bbb"]
