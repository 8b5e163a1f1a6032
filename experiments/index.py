"""The tables of `docs/results/index.md`, from the tables that the experiments wrote: the paper's numbers beside ours.

    python experiments/index.py        # `results.py` does it at its end

What stands between the comments of the page is written anew; the words around it stay.
"""

from __future__ import annotations

import argparse
import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from common import RESULTS

TITLES = {
    "rq1_fidelity": "RQ1",
    "rq2_selection": "RQ2",
    "rq3_cost": "RQ3",
    "scaling": "Scaling",
    "rq4_support_size": "RQ4",
    "rq5_alignment": "RQ5",
    "ablation": "Ablation",
    "reuse": "Reuse",
    "noise": "Flipped labels",
    "distribution_shift": "Distribution shift",
    "attempts": "What was tried",
    "beyond": "Beyond the paper",
    "cora": "Cora, and In-Run",
}


def main(argv: list[str] | None = None) -> None:
    """Write the tables into the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=RESULTS, help="where the experiments have written")
    write(parser.parse_args(argv).folder)


def write(folder: Path) -> None:
    """Write the tables, and how they were made, into `index.md` of a folder that has all pages."""
    path = folder / "index.md"
    page = path.read_text(encoding="utf-8")
    for name, lines in (("numbers", numbers(folder)), ("runs", runs(folder)), ("made", made(folder))):
        block = f"<!-- {name} -->\n\n" + "\n".join(lines) + f"\n\n<!-- /{name} -->"
        page, n = re.subn(rf"<!-- {name} -->.*<!-- /{name} -->", lambda _, block=block: block, page, flags=re.DOTALL)
        if n != 1:
            raise SystemExit(f"{path} has no place for {name!r}: <!-- {name} --> ... <!-- /{name} -->")
    path.write_text(page, encoding="utf-8")


def numbers(folder: Path) -> list[str]:
    """The paper's numbers beside ours, one line for each table of the paper or part of it."""
    table = {path.stem: pd.read_csv(path) for path in folder.glob("*.csv")}
    gpu = {path.stem: pd.read_csv(path) for path in (folder / "gpu").glob("*.csv")}
    fidelity, selection, scaling = table["rq1_fidelity"], table["rq2_selection"], table["scaling"]
    sizes = table["rq4_support_size"].set_index("support")
    cora = gpu["cora"].set_index("method")

    def pearson(words: str) -> str:
        return both(line(fidelity, workload=words), "pearson", "spearman")

    def accuracy(method: str, workload: str = "weighted KNN") -> str:
        return both(line(selection, workload=workload, method=method), "at 10 %", "at 20 %", digits=1)

    def cost(workload: str, costs: pd.DataFrame = table["rq3_cost"], column: str = "to the rule (s)") -> str:
        return "; ".join(shown(line(costs, workload=workload, method=m)[column]) for m in COSTS)

    def rows_in(model: str, method: str) -> str:
        part = scaling[(scaling["model"] == model) & (scaling["method"] == method)]
        largest = part.iloc[-1]
        star = "" if pd.isna(largest["extrapolated"]) else r"\*"
        return f"{largest['seconds']:.3g}{star}"

    def supports(workload: str, *names: str, of: pd.DataFrame = table["rq5_alignment"]) -> str:
        found = [line(of, workload=workload, support=name)["pearson"] for name in names]
        return ", ".join(f"{p:.3f}" for p in found)

    def gains(workload: str) -> str:
        part = table["ablation"][table["ablation"]["workload"].str.startswith(workload)]
        times = [f"{t:.3g}" for t in part["times fewer trainings"].dropna()]
        return (
            f"{', '.join(times[:3])}; then inclusion weights {times[3]}, centring {times[4]}, additive fit {times[5]}"
        )

    def nodes(method: str, *columns: str, digits: int = 3) -> str:
        return both(cora.loc[method], *columns, digits=digits)

    f1 = table["opendataval_protocol"].groupby("method")["F1"].mean()
    mean = table["noise"].groupby("method")["average precision"].mean()
    reused = table["reuse"].groupby("workload", sort=False)["reused"].last()
    ours, games = "LSMR-A, a game for each test node", "LSMR-A, the paper's games"
    first, second = cora.loc["In-Run, first order"], cora.loc["In-Run, second order"]
    rows = [
        ("[RQ1](rq1_fidelity.md), Pearson and Spearman: weighted KNN", "0.839, 0.840", pearson("weighted KNN"),
         "rq1_fidelity"),
        ("trees; SVM", "pictures only", f"{pearson('trees')}; {pearson('RBF-SVM')}", ""),
        ("GCN, whole Cora", "0.516, 0.376", f"[{nodes(ours, 'pearson', 'spearman')}](gpu/cora.md); the paper's games "
         f"{nodes(games, 'pearson', 'spearman')}", "cora"),
        ("[RQ2](rq2_selection.md), accuracy with the best 10 and 20 % of MNIST", "70.4, 78.6",
         f"{accuracy('LSMR-A')}; classes in balance {accuracy('LSMR-A, balanced')}", "rq2_selection"),
        ("the same by Global-MC", "60.0, 68.9",
         f"{accuracy('global-mc')}; classes in balance {accuracy('global-mc, balanced')}", ""),
        ("[RQ3](rq3_cost.md), seconds to its stopping rule by LSMR-A, Local-MC, Global-MC: weighted KNN",
         "88; 537; 212,408", cost("weighted KNN"), "rq3_cost"),
        ("trees", "111; 243; 1,446", cost("trees"), ""),
        ("SVM", "251; 16,013; 101,903", cost("RBF-SVM"), ""),
        ("GCN, a part of Cora", "7,241; 45,378; 200,860", cost("GCN"), ""),
        ("GCN, whole Cora, to an error of 0.1", "none",
         f"[{cost('GCN', gpu['rq3_cost'], 'to error 0.1 (s)')}](gpu/rq3_cost.md) on one GPU", ""),
        ("[Scaling](scaling.md), seconds at 10,000 rows of MNIST: LSMR-A, Local-MC, Global-MC",
         "under 120; more; infeasible",
         f"{rows_in('WKNN', 'LSMR-A')} (exact); {rows_in('WKNN', 'local-mc')}; {rows_in('WKNN', 'global-mc')}",
         "scaling"),
        ("trees, 500 rows: LSMR-A, Local-MC", "nearly constant; ten times as much",
         f"{rows_in('DT', 'LSMR-A')}; {rows_in('DT', 'local-mc')}", ""),
        ("KNN, a million rows", "none", f"{rows_in('KNN', 'LSMR, uniform votes')} s", ""),
        ("[RQ4](rq4_support_size.md), Pearson for supports of 1, 3, 5, 10, 20 rows",
         "0.443, 0.619, 0.721, 0.839, 0.901",
         ", ".join(f"{sizes.loc[size, 'pearson']:.3f}" for size in ("1", "3", "5", "10", "20")), "rq4_support_size"),
        ("accuracy with the best 10 and 20 %, supports of 10", "70.4, 78.6",
         both(sizes.loc["10"], "at 10 %", "at 20 %", digits=1), ""),
        ("[RQ5](rq5_alignment.md), supports of KNN, tree, RBF, random under weighted KNN",
         "0.839, 0.713, 0.596, 0.118", supports("weighted KNN", "its own", "tree", "RBF kernel", "random"),
         "rq5_alignment"),
        ("supports of GCN, tree, KNN, random under a GCN", "0.516, 0.136, 0.112, 0.164",
         f"[{supports('GCN', *KINDS, of=gpu['rq5_alignment'])}](gpu/rq5_alignment.md); "
         f"{supports('GCN', *KINDS)} on a part of Cora", ""),
        ("[Ablation](ablation.md), times fewer trainings by locality, subset-centric, pivots: trees",
         "5.95, 1.60, 1.37, to its rule", f"{gains('trees')}, to equal error", "ablation"),
        ("GCN", "4.43, 2.82, 2.22", gains("GCN"), ""),
        ("[Reuse](reuse.md), Corollary 1: share of the subsets that are reused", "no numbers",
         "; ".join(f"{name.split(',')[0]} {100 * share:.0f} %" for name, share in reused.items()), "reuse"),
        ("[In-Run](gpu/cora.md), Pearson, first and second order", "0.344, 0.347",
         f"{first['pearson']:.3f}, {second['pearson']:.3f}", "cora"),
        ("accuracy with the best 5 and 10 %: LSMR-A; In-Run", "78.6, 83.9; 37.3, 39.9",
         f"{nodes(ours, 'at 5 %', 'at 10 %', digits=1)} (the paper's games "
         f"{nodes(games, 'at 5 %', 'at 10 %', digits=1)}); {first['at 5 %']:.1f}, {first['at 10 %']:.1f}", ""),
        ("[Graph networks](gcn.md), seconds for the paper's games", "7,241",
         f"{cora.loc[games, 'seconds']:.1f} on one GPU", "cora"),
        ("[Flipped labels](noise.md), average precision", "none",
         f"{mean['suspects']:.3f} by `audit.label_errors`, KNN-Shapley {mean['KNN-Shapley']:.3f}, "
         f"LSMR-A {mean['LSMR-A']:.3f}",
         "noise"),
        ("[OpenDataVal's protocol](opendataval_protocol.md), F1 of noisy labels, mean over 12 lines", "none",
         f"{f1['suspects']:.3f} by `audit.label_errors`, {f1['forest out of bag']:.3f} by values of a forest, Data-OOB "
         f"{f1['Data-OOB']:.3f}, KNN-Shapley {f1['KNN-Shapley']:.3f}", "opendataval_protocol"),
        ("[Distribution shift](distribution_shift.md), Corollary 3", "rows outside the support add variance",
         "they do not, for an exactly local model", "distribution_shift"),
    ]  # fmt: skip
    head = ["| table or figure | the paper | ours | name |", "|---|---|---|---|"]
    return head + [
        f"| {what} | {paper} | {found} | {f'`{name}`' if name else ''} |" for what, paper, found, name in rows
    ]


COSTS = ("LSMR-A", "local-mc", "global-mc")
KINDS = ("its own", "tree", "nearest", "random")


def line(table: pd.DataFrame, **columns: str) -> pd.Series:
    """The first line whose workload begins with some words, and whose other columns are what they should be."""
    for name, words in columns.items():
        table = table[table[name].str.startswith(words)] if name == "workload" else table[table[name] == words]
    return table.iloc[0]


def both(row: pd.Series, *columns: str, digits: int = 3) -> str:
    """Numbers of a line, side by side."""
    return ", ".join(f"{row[column]:.{digits}f}" for column in columns)


def shown(seconds: Any) -> str:
    """Seconds as a table has them, without an exponent."""
    text = str(seconds)
    star = r"\*" * text.endswith("*")
    try:
        number = float(text.rstrip("*"))
    except ValueError:
        return text
    return text if np.isnan(number) else (f"{number:,.0f}" if number >= 100 else f"{number:.3g}") + star


COMMANDS = {"": "make results", "gpu/": "make results-gpu"}
"""What makes the pages of a folder."""


def runs(folder: Path) -> list[str]:
    """The commands of each folder with their options, and how long they took, from its log."""
    lines = []
    for where, command in COMMANDS.items():
        log = (folder / where / "log.txt").read_text(encoding="utf-8")
        times = [
            datetime.fromisoformat(time) for time in re.findall(r"^(\d{4}-\d\d-\d\d [\d:]{8}) ", log, re.MULTILINE)
        ]
        given = re.findall(rf"^[\d-]+ [\d:]+ ({command}.*): commit ", log, re.MULTILINE) or [command]
        minutes = (times[-1] - times[0]).total_seconds() / 60
        words = ", then ".join(f"`{each}`" for each in given)
        lines.append(
            f"- {words}: {times[0]:%d %B %Y}, {minutes:.0f} minutes from start to end ([its log]({where}log.txt))."
        )
    return lines


def made(folder: Path) -> list[str]:
    """When each page was made; it says itself where, and by which command."""
    lines = ["| page | date | commit | minutes |", "|---|---|---|---:|"]
    for where in COMMANDS:
        path = folder / where / "made.json"
        runs = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        for name, title in TITLES.items():
            if name in runs:
                how = runs[name]
                lines.append(
                    f"| [{title}{', on a GPU' if where else ''}]({where}{name}.md) | {how['date']} | "
                    f"{how['commit']} | {how['seconds'] / 60:.1f} |"
                )
    page = " ".join((folder / "opendataval_protocol.md").read_text(encoding="utf-8").split())
    found = re.search(r"\(Made with [^()]*, (\d+ \w+ \d{4}), commit (\w+\+?)\.\)", page)
    if found:
        day, commit = found.groups()
        date = datetime.strptime(day, "%d %B %Y")
        lines.append(f"| [OpenDataVal's protocol](opendataval_protocol.md) | {date:%Y-%m-%d} | {commit} |  |")
    return lines


if __name__ == "__main__":
    main()
