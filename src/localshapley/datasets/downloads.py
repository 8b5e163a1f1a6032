"""Data files: found in a folder or downloaded, and read only after their checksum is verified."""

from __future__ import annotations

import gzip
import hashlib
import os
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

from localshapley.errors import LocalShapleyError

VARIABLE = "LOCALSHAPLEY_DATA"
"""Environment variable that names the folder of the data files."""
TIMEOUT = 30  # seconds to wait for a silent server


class DataError(LocalShapleyError, OSError):
    """A data file is missing, cannot be downloaded, or is not the file that it should be."""


class File(NamedTuple):
    """A public data file.

    Attributes
    ----------
    path : str
        Where it belongs in the data folder; it is also found without its own folder, and packed, with ``.gz`` added.
    sha256 : str
        Checksum of its contents, unpacked if it was packed.
    url : str
    """

    path: str
    sha256: str
    url: str


def read(file: File, data_home: str | os.PathLike[str] | None = None) -> bytes:
    """Contents of a data file, once its checksum is verified; downloaded if it is missing.

    Parameters
    ----------
    file : File
    data_home : path, optional
        Folder of the data files; by default that of the environment variable ``LOCALSHAPLEY_DATA``, else
        ``~/localshapley_data``.
    """
    home = Path(data_home or os.environ.get(VARIABLE) or "~/localshapley_data").expanduser()
    for name in (file.path, Path(file.path).name, f"{file.path}.gz", f"{Path(file.path).name}.gz"):
        if (home / name).is_file():
            return _read(home / name, file)
    return _download(file, home)


def _read(path: Path, file: File) -> bytes:
    contents = path.read_bytes()
    if path.name == f"{Path(file.path).name}.gz":
        try:
            contents = gzip.decompress(contents)
        except (OSError, EOFError) as error:
            raise DataError(f"{str(path)!r} cannot be unpacked ({error}); delete it and load again.") from error
    if not _is_right(contents, file):
        raise DataError(
            f"{str(path)!r} was not read: its checksum is not that of the published file; delete it and load again."
        )
    return contents


def _download(file: File, home: Path) -> bytes:
    """Download a file; it is put in its place only when it is complete and right."""
    path = home / file.path
    try:
        with urlopen(file.url, timeout=TIMEOUT) as answer:
            contents: bytes = answer.read()
    except (OSError, HTTPException) as error:
        raise DataError(
            f"{path.name} is not in {str(home)!r} and cannot be downloaded from {file.url} ({error}). Put it there as "
            f"{file.path}, or name the folder that has it by data_home or the environment variable {VARIABLE}."
        ) from error
    if not _is_right(contents, file):
        raise DataError(f"{file.url} gave a file whose checksum is not the published one; it was not kept.")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_bytes(contents)
    part.replace(path)
    return contents


def _is_right(contents: bytes, file: File) -> bool:
    return hashlib.sha256(contents).hexdigest() == file.sha256
