"""What kernels look like, whatever they compute."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import localshapley

KERNELS = Path(localshapley.__file__).parent / "kernels"
MODULES = {path.stem: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(KERNELS.glob("*.py"))}
IMPORTED = ("__future__", "collections", "functools", "math", "numba", "numpy", "typing", "localshapley.arrays")
"""All that kernels may import besides each other; `jit`, which compiles them, may also warn and pass over errors."""


MOST_LINES, MOST_ARGUMENTS = 100, 10


def is_allowed(name: str) -> bool:
    """Whether kernels may import a module."""
    return any(name == known or name.startswith(known + ".") for known in (*IMPORTED, "localshapley.kernels"))


def imports(tree: ast.Module) -> list[str]:
    """Names of all modules that a module imports, anywhere in it."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append("." * node.level + (node.module or ""))
    return found


@pytest.mark.parametrize("module", MODULES)
def test_kernels_import_arrays_and_each_other_alone(module):
    allowed = {"localshapley.errors", "contextlib"} if module == "jit" else set()
    assert [name for name in imports(MODULES[module]) if not is_allowed(name) and name not in allowed] == []


@pytest.mark.parametrize("module", MODULES)
def test_kernels_multiply_where_a_power_would_do(module):
    """Numba compiles one power for all kernels of a process, with the arithmetic that the first of them allows: the
    last bit of the others would depend on what was compiled before."""
    in_functions = [node for node in MODULES[module].body if isinstance(node, ast.FunctionDef)]
    powers = [
        f"{function.name}, line {node.lineno}"
        for function in in_functions
        for node in ast.walk(function)
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Pow)
        if not all(isinstance(part, ast.Constant | ast.UnaryOp) for part in _operands(node))
    ]
    assert powers == []


@pytest.mark.parametrize("module", MODULES)
def test_kernels_fit_on_a_page_and_take_few_arguments(module):
    """Arrays that belong together travel as tuples. Docstrings are not counted."""
    large = []
    for function in ast.walk(MODULES[module]):
        if isinstance(function, ast.FunctionDef):
            lines = function.end_lineno - function.lineno + 1 - len((ast.get_docstring(function) or "").splitlines())
            arguments = len(function.args.posonlyargs + function.args.args + function.args.kwonlyargs)
            if lines > MOST_LINES or arguments > MOST_ARGUMENTS:
                large.append(f"{function.name}: {lines} lines, {arguments} arguments")
    assert large == []


def _operands(node: ast.BinOp | ast.AugAssign) -> tuple[ast.expr, ast.expr]:
    return (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
