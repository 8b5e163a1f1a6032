"""Tables from files: Adult and Bank Marketing."""

from __future__ import annotations

import gzip
import io
import os

import numpy as np

from localshapley.datasets.dataset import Dataset
from localshapley.datasets.downloads import File, read
from localshapley.errors import InvalidArgumentError

PMLB = "https://media.githubusercontent.com/media/EpistasisLab/pmlb/master/datasets"
FILES = {
    "adult": File(
        "tabular/adult.tsv.gz",
        "fb8bc76eafa39558b6044907f23416faf99099cefb8afd06a2cf5afbdae1b506",
        f"{PMLB}/adult/adult.tsv.gz",
    ),
    "bank": File(
        "tabular/bank.csv",
        "dc8d576e9bda0f41ee891251bd84bab9a39ce576cba715aac08adc2374a01fde",
        "https://raw.githubusercontent.com/kshanmol/bank-marketing/master/data/bank.csv",
    ),
}
NUMBERS = {
    "adult": ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"),
    "bank": ("age", "balance", "day", "campaign", "pdays", "previous"),
}


def load_tabular(
    name: str,
    *,
    n_train: int = 1000,
    n_test: int = 1000,
    seed: int = 0,
    data_home: str | os.PathLike[str] | None = None,
) -> Dataset:
    """Load rows of Adult (who earns over 50K) or Bank Marketing (who takes the offer), drawn at random.

    Numbers are scaled and each category becomes a feature, as learnt from the training rows. The length of the call is
    left out of Bank Marketing: it is known only afterwards.

    Parameters
    ----------
    name : {"adult", "bank"}
    n_train, n_test : int, default=1000
    seed : int, default=0
    data_home : path, optional
        As in `load_graph`.
    """
    import pandas as pd

    from localshapley.data.preparing import prepare

    contents = read(FILES[name], data_home)
    if name == "adult":
        table = pd.read_csv(io.BytesIO(gzip.decompress(contents)), sep="\t")
        labels = np.where(table.pop("target") == 1, "at most 50K", "over 50K")
    else:
        table = pd.read_csv(io.BytesIO(contents), sep=";").drop(columns="duration")
        labels = table.pop("y").to_numpy(dtype=str)
    if min(n_train, n_test) < 1 or n_train + n_test > len(labels):
        raise InvalidArgumentError(
            f"n_train and n_test must be at least 1 and together at most {len(labels)}; got {n_train} and {n_test}."
        )
    order = np.random.default_rng(seed).permutation(len(labels))
    train, test = order[:n_train], order[n_train : n_train + n_test]
    categories = [column for column in table.columns if column not in NUMBERS[name]]
    prepared = prepare(table.iloc[train], table.iloc[test], categories)
    assert prepared.X_test is not None
    return Dataset(prepared.X, labels[train], prepared.X_test, labels[test], prepared.names)
