"""The rooms: data move from one to the next, and no room knows a later one."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "localshapley"
PAGE = Path(__file__).parents[1] / "docs" / "contributing" / "index.md"
ROOMS = [
    room.split()
    for room in """
    errors notes arrays formatting parameter_docs
    kernels
    runtime
    io
    data datasets
    search
    supports
    coalitions
    sampling scoring stopping theory
    models torch
    methods
    question problem
    engine
    valuation locality api nodes updating planning
    selection audit owners comparators clean opendataval tasks warming
    report cli
    """.strip().splitlines()
]
"""Folders and files at the top, room by room: each may import from its own room and those before it."""
ROOM = {name: number for number, names in enumerate(ROOMS) for name in names}


def modules() -> Iterator[tuple[str, Path]]:
    """Dotted name within the package, and file, of every module."""
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


NAMES = {module for module, _ in modules()}


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and dotted name, within the package, of everything that a module imports, now or when it is called."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue  # types alone: nothing is imported
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "localshapley":
            within = node.module.removeprefix("localshapley").removeprefix(".")
            for alias in node.names:
                below = f"{within}.{alias.name}".removeprefix(".")
                name = below if below in NAMES else within
                if name:  # the version is no module
                    yield node.lineno, name
        elif isinstance(node, ast.Import):
            own = [alias.name for alias in node.names if alias.name.startswith("localshapley.")]
            yield from ((node.lineno, name.removeprefix("localshapley.")) for name in own)
        yield from imports(node)


def top(module: str) -> str:
    return module.split(".")[0]


def edges() -> list[tuple[str, str, int]]:
    found = []
    for module, path in modules():
        if module in ("", "__main__"):
            continue  # the public names, and the command line
        found += [(module, to, line) for line, to in imports(ast.parse(path.read_text(encoding="utf-8")))]
    return found


def test_no_room_imports_from_a_later_one():
    wrong = [
        f"{module} imports {to} (line {line}), which comes later"
        for module, to, line in edges()
        if ROOM[top(to)] > ROOM[top(module)]
    ]
    assert not wrong, "\n".join(wrong)


def test_the_audit_of_a_table_needs_no_valuation():
    """It imports models at most, and what they import: no method, question, problem, engine or valuation."""
    models = next(number for number, names in enumerate(ROOMS) if "models" in names)
    above = [f"{module} imports {to}" for module, to, _ in edges() if top(module) == "audit" and ROOM[top(to)] > models]
    assert [edge for edge in above if " imports audit" not in edge] == []


def test_the_contributing_page_draws_these_rooms():
    drawn = re.findall(r"^\| +(\d+) \| (.*?) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [int(number) for number, _ in drawn] == list(range(1, len(ROOMS) + 1))
    assert [re.findall(r"`(\w+)(?:\.py|/)`", names) for _, names in drawn] == ROOMS
    assert len(ROOMS) <= 16


def test_modules_do_not_import_each_other_in_circles():
    after: dict[str, set[str]] = {}
    for module, to, _ in edges():
        after.setdefault(module, set()).add(to)

    def walk(module: str, way: tuple[str, ...]) -> None:
        assert module not in way, " → ".join((*way, module))
        for to in sorted(after.get(module, ())):
            walk(to, (*way, module))

    seen: set[str] = set()
    for module in sorted(after):
        if module not in seen:
            seen.add(module)
            walk(module, ())


def test_every_folder_and_file_at_the_top_is_in_a_room():
    there = {top(module) for module, _ in modules()} - {"", "__main__"}
    assert there == set(ROOM)
    assert sum(len(names) for names in ROOMS) == len(ROOM)  # each in one room
    assert len(list(SOURCE.glob("*.py"))) <= 24  # with the public names


def test_the_loop_fits_on_one_screen():
    tree = ast.parse((SOURCE / "engine" / "loop.py").read_text(encoding="utf-8"))
    play = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "play")
    assert play.end_lineno - play.lineno < 40
    assert len((SOURCE / "engine" / "loop.py").read_text(encoding="utf-8").splitlines()) < 200
    calls = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    assert not calls & {"isinstance", "hasattr", "getattr", "issubclass", "type"}


@pytest.mark.parametrize("extra", ["torch", "dask", "matplotlib", "polars"])
def test_extras_are_imported_only_where_they_are_asked_for(extra):
    """At the top of a file only by those that are themselves imported late."""
    late = {
        "torch.batched_gcn",
        "torch.fused_gcn",
        "torch.triton_gcn",
        "torch.batched_networks",
        "comparators.in_run",
        "comparators.in_run_graph",
        "search.on_device",
    }
    for module, path in modules():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        named = [
            (node.module or "") if isinstance(node, ast.ImportFrom) else node.names[0].name
            for node in tree.body
            if isinstance(node, ast.ImportFrom | ast.Import)
        ]
        assert module in late or not any(name.split(".")[0] == extra for name in named), module


def test_no_two_modules_have_one_name():
    names = Counter(
        module.split(".")[-1] for module, path in modules() if path.stem not in ("__init__", "__main__", "base")
    )
    assert [name for name, n in names.items() if n > 1] == []
