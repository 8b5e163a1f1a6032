"""The wheel, installed into an empty environment outside the repository, does what the README shows."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
import run_pages

import localshapley as ls
from test_docs import assert_alike

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], cwd=ROOT, check=True)
    (file,) = folder.glob("*.whl")
    return file


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Run a program of an environment that has the wheel, and finds the dependencies where they are already."""
    folder = tmp_path_factory.mktemp("elsewhere")
    venv.create(folder / "env", symlinks=os.name != "nt")
    programs = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
    pip = [sys.executable, "-m", "pip", "--python", programs / "python"]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", wheel], check=True)
    # Files of this kind count in the environment itself only: an editable installation of the sources stays unseen.
    where = programs_say(programs, folder, "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    here = [path for path in sys.path if Path(path).name == "site-packages"]
    (Path(where.strip()) / "dependencies.pth").write_text("\n".join(here), encoding="utf-8")

    def run(program, *words):
        return programs_say(programs, folder, program, *words)

    run.folder = folder
    return run


def programs_say(programs, folder, program, *words):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run([programs / program, *words], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_package_and_nothing_else_is_inside(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    package = {f"localshapley/{path.relative_to(ROOT / 'src' / 'localshapley').as_posix()}" for path in source_files()}
    assert {name for name in names if ".dist-info/" not in name} == package
    assert {Path(name).suffix for name in package} == {".py", ".html", ".css", ".js", ".typed"}
    assert {"localshapley/py.typed", "localshapley/report/templates/style.css"} <= package
    assert {name.split("/", 1)[1] for name in names - package} == {
        "METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE",
    }  # fmt: skip


def source_files():
    every = (ROOT / "src" / "localshapley").rglob("*")
    return [path for path in every if path.is_file() and "__pycache__" not in path.parts]


def test_it_is_the_wheel_that_is_imported_with_its_data_sets(installed):
    script = (
        "import localshapley as ls\n"
        "print(ls.__file__)\n"
        "for name in ls.datasets.BUNDLED: print(name, len(ls.datasets.load(name).X) > 50)\n"
    )
    file, *sets = installed("python", "-c", script).splitlines()
    assert Path(file).is_relative_to(installed.folder / "env")
    assert sets == [f"{name} True" for name in ls.datasets.BUNDLED]


def test_the_first_example(installed):
    blocks = list(run_pages.BLOCK.finditer((ROOT / "README.md").read_text(encoding="utf-8")))
    at = next(i for i, block in enumerate(blocks) if block[1] == "python")
    assert blocks[at + 1][1] == "text"
    assert_alike(blocks[at + 1][2], installed("python", "-c", blocks[at][2]), "README.md")


def test_the_command_line_and_the_report(installed):
    assert installed("localshapley", "--version") == f"localshapley {ls.__version__}\n"
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    commands = [shlex.split(line, comments=True) for line in lines if line.startswith("localshapley ")]
    assert [words[1] for words in commands] == ["value", "select", "suspects"]  # of the table of the first example
    for words in commands:
        assert installed(*words)
    page = (installed.folder / "report.html").read_text(encoding="utf-8")
    templates = ROOT / "src" / "localshapley" / "report" / "templates"
    for name in ("style.css", "script.js", "bench.js"):
        assert (templates / name).read_text(encoding="utf-8").splitlines()[-1] in page
    assert (installed.folder / "chosen.csv").stat().st_size > 0
