"""Environments of other libraries, each made on first use in the user's cache.

Most need packages that do not go together with ours. OpenDataVal is put on top of the packages of this environment: it
pins releases of 2023, but runs with those of today. Its sets of images and models of text, which need torchvision and
transformers, are not used; `without_images.py` has stand-ins.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

PINS = {
    "pydvl": ["pydvl==0.10.0", "numpy<2"],
    "shapiq": ["shapiq==1.8.0", "xgboost-cpu", "lightgbm"],
    "cleanlab": ["cleanlab==2.9.0"],
    "dattri": ["dattri==0.3.0", "torch==2.13.0"],
    "opendataval": ["--no-deps", "opendataval==1.3.0", "geomloss==0.2.6", "torcheval==0.0.7", "tqdm"],
}
NEWER = {"shapiq": (3, 12)}
"""Libraries that need a newer Python than we do."""


def python_of(name: str) -> Path:
    """The interpreter of an environment with a library."""
    folder = Path("~/.cache/localshapley/peers").expanduser() / name
    python = folder / "bin" / "python"
    if not (folder / "made").is_file():
        subprocess.run([_below(NEWER.get(name, (3, 11))), "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PINS[name]], check=True)
        (folder / "made").touch()
    if name == "opendataval":  # each time: another checkout may have made the environment
        here, own = Path(__file__).resolve().parent, next(folder.glob("lib/python*/site-packages"))
        lines = here.parents[1] / "src", sysconfig.get_path("purelib"), here, "import without_images"
        (own / "below.pth").write_text("\n".join(map(str, lines)) + "\n", encoding="utf-8")
    return python


def _below(least: tuple[int, int]) -> str:
    """This interpreter, or the oldest one on the path, or of pyenv, that is new enough."""
    if sys.version_info[:2] >= least:
        return sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for minor in range(least[1], least[1] + 5):
        for found in (shutil.which(f"python3.{minor}"), *map(str, pyenv.glob(f"3.{minor}.*/bin/python"))):
            if found and subprocess.run([found, "--version"], capture_output=True, check=False).returncode == 0:
                return found
    raise SystemExit(f"needs Python {least[0]}.{least[1]} or newer on the path")
