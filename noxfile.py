"""`make test-pythons`: the quick tests on every Python, with the oldest dependencies, the newest, and pandas 2.3.

    nox                                    # all that are found; those that are not are named
    nox --python 3.13                      # one Python
    nox --session "quick-3.13(oldest)"     # one environment

`docs/contributing/versions.md` says which tests are quick and how the oldest versions are chosen.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import nox
from packaging.requirements import Requirement

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
TOOLS = ("pytest", "pytest-xdist", "hypothesis")
"""What the quick tests need besides the package, with the bounds of requirements-test.txt."""
QUICK = ("-o", "addopts=--strict-markers -q", "-m", "quick", "tests")
"""Which tests: without the examples in docstrings, whose collection imports every module and with it PyTorch."""
PANDAS_2 = "pandas==2.3.*"
"""The last pandas before 3, where texts, and integers beside gaps, have other types."""
EXTRAS = ("plots", "polars")
"""Extras that are tested too: those that install in seconds."""
ROOT = Path(__file__).parent

nox.needs_version = ">=2024.4"
nox.options.reuse_venv = "yes"
nox.options.error_on_missing_interpreters = False

# The commands of pyenv run only the versions that it is set to; look into its folders instead.
PYENV = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
os.environ["PATH"] = os.pathsep.join([*map(str, sorted(PYENV.glob("3.*/bin"))), os.environ["PATH"]])


@nox.session(python=PYTHONS)
@nox.parametrize("dependencies", [nox.param(name, id=name) for name in ("oldest", "pandas-2", "newest")])
def quick(session: nox.Session, dependencies: str) -> None:
    """Run the quick tests."""
    newest = ["--upgrade", "--upgrade-strategy", "eager"]
    versions = {"oldest": oldest(str(session.python)), "pandas-2": [*newest, PANDAS_2], "newest": newest}[dependencies]
    session.install("--only-binary", ":all:", *versions, *tools(), "--editable", f".[{','.join(EXTRAS)}]")
    # Compiled kernels fit one Python and one numba: each environment has its own.
    cache = {"NUMBA_CACHE_DIR": str(Path(session.virtualenv.location) / "numba")}
    session.run("python", "-c", SAY_VERSIONS, log=False)
    session.run("python", "-m", "pytest", *QUICK, *session.posargs, env=cache)


SAY_VERSIONS = """
from importlib.metadata import version
names = "numpy scipy scikit-learn numba joblib threadpoolctl pandas pyarrow jinja2 typer rich matplotlib polars"
print(*(f"{name} {version(name)}" for name in names.split()), sep=", ")
"""


def oldest(python: str) -> list[str]:
    """The oldest version of each dependency that pyproject.toml allows for a Python.

    >>> oldest("3.12")[0]
    'numpy==2.1'
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *(line for name in EXTRAS for line in extras[name])]
    wanted = [Requirement(line) for line in lines]
    here = [one for one in wanted if one.marker is None or one.marker.evaluate({"python_version": python})]
    return [f"{one.name}{str(one.specifier).replace('>=', '==')}" for one in here]


def tools() -> list[str]:
    """The lines of requirements-test.txt that the quick tests need."""
    lines = (ROOT / "requirements-test.txt").read_text(encoding="utf-8").splitlines()
    wanted = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return [str(one) for one in wanted if one.name in TOOLS]
