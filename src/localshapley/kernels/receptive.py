"""Receptive fields of coalitions in a graph: the few nodes and features that a two-layer network sees."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from localshapley.arrays import AnyArray, Floats, Indices, Ints
from localshapley.kernels.jit import kernel, part

MIXINGS = ("symmetric", "mean", "sum")
"""How a layer weighs a node `j` at node `i`: by `1/√(d_i d_j)`, by a mean over neighbours, or all alike."""
SYMMETRIC, MEAN = MIXINGS.index("symmetric"), MIXINGS.index("mean")


class Csr(NamedTuple):
    """A CSR matrix: offsets, columns and float32 values."""

    indptr: Ints
    indices: Indices
    data: AnyArray


class ClosedGraph(NamedTuple):
    """Each node's neighbours and itself (CSR), the nodes that are always present, and the features.

    Where all coalitions see the same graph the features are given propagated, and `shared` is true. `mixing` is a place
    in `MIXINGS`. With two blocks of weights a node itself meets the first, and its neighbours the second: the features
    are then given twice, for the second block in rows and columns of their own (propagated: in columns only). `n_next`
    counts a node's neighbours and itself, `n_second` theirs, and `n_always` those of the first that are always present.
    """

    indptr: Ints
    nodes: Indices
    always: AnyArray
    features: Csr
    n_features: int
    shared: bool
    mixing: int
    n_blocks: int
    n_next: Ints
    n_second: Ints
    n_always: Ints


class Field(NamedTuple):
    """What networks see from the wanted nodes of each coalition, coalitions below each other.

    `outer` holds wanted nodes × hidden rows, `near` hidden rows × rows (empty if the features come propagated), both
    with the weights of the propagation. A wanted node has a row for each block of weights. `rows` are rows of the
    graph's features, nodes for the first block; −1 is one whose only feature is the bias, the first of a coalition's
    rows and the first entry of each row of `near`.
    """

    outer: Csr
    near: Csr
    hidden_indptr: Ints
    row_indptr: Ints
    rows: Indices


@kernel(_nrt=True)
def merge_tests(test_indptr: Ints, tests: Indices, rows: tuple[Ints, Indices], n_rows: int) -> tuple[Ints, Indices]:
    """Test rows behind the tests of each coalition (`rows` of a test, CSR), each once (CSR)."""
    n = 0
    for t in tests:
        n += rows[0][t + 1] - rows[0][t]
    indptr, merged, mark = np.zeros_like(test_indptr), np.empty(n, dtype=np.int32), np.full(n_rows, -1)
    n = 0
    for c in range(len(test_indptr) - 1):
        for t in tests[test_indptr[c] : test_indptr[c + 1]]:
            for i in rows[1][rows[0][t] : rows[0][t + 1]]:
                if mark[i] != c:
                    mark[i], merged[n] = c, i
                    n += 1
        indptr[c + 1] = n
    return indptr, merged[:n].copy()


@kernel(_nrt=True)
def sum_scores(
    test_indptr: Ints,
    tests: Indices,
    rows: tuple[Ints, Indices],
    n_rows: int,
    indptr: Ints,
    merged: Indices,
    scores: Floats,
) -> Floats:
    """Score of each test of each coalition: the sum over its test rows, whose scores are given as merged."""
    out, found = np.zeros(len(tests)), np.empty(n_rows)
    for c in range(len(test_indptr) - 1):
        for e in range(indptr[c], indptr[c + 1]):
            found[merged[e]] = scores[e]
        for k in range(test_indptr[c], test_indptr[c + 1]):
            t = tests[k]
            for i in rows[1][rows[0][t] : rows[0][t + 1]]:
                out[k] += found[i]
    return out


@kernel(_nrt=True)
def walk(indptr: Ints, nodes: Indices, wanted_indptr: Ints, wanted: Indices, graph: ClosedGraph) -> Field:
    """Walk two steps from the wanted nodes of each coalition, in the graph of its nodes and those always present."""
    n, n_nodes = len(indptr) - 1, len(graph.indptr) - 1
    closed, others, shared, n_blocks = graph.indptr, graph.nodes, graph.shared, graph.n_blocks
    n_next = n_second = 0
    for i in wanted:
        n_next += graph.n_next[i]
        n_second += graph.n_second[i]
    outer_indptr, outer_indices, outer_data = outer = _empty(len(wanted) * n_blocks, n_next)
    near_indptr, near_indices, near_data = near = _empty(0 if shared else n_next, 0 if shared else n_second + n_next)
    row_indptr, rows = np.zeros(n + 1, dtype=np.int64), np.empty(n + n_next + n_second, dtype=np.int32)
    hidden_indptr = np.zeros(n + 1, dtype=np.int64)
    kept = graph.always.copy()
    degree = graph.n_always.copy()
    hidden, hidden_mark = np.empty(n_nodes, dtype=np.int64), np.full(n_nodes, -1)
    row, row_mark = np.empty(n_nodes * n_blocks, dtype=np.int64), np.full(n_nodes * n_blocks, -1)
    members = np.empty(n_nodes, dtype=np.int32)
    n_outer = n_hidden = n_near = n_rows = 0
    for c in range(n):
        _add(nodes[indptr[c] : indptr[c + 1]], 1, graph, kept, degree)
        first = n_hidden
        for w in range(wanted_indptr[c], wanted_indptr[c + 1]):
            i = wanted[w]
            for block in range(n_blocks):
                for e in range(closed[i], closed[i + 1]):
                    j = others[e]
                    if kept[j] and _meets(block, n_blocks, i, j):
                        if hidden_mark[j] != c:
                            hidden_mark[j], hidden[j], members[n_hidden - first] = c, n_hidden, j
                            n_hidden += 1
                        outer_indices[n_outer] = hidden[j]
                        outer_data[n_outer] = _weight(graph.mixing, degree, i, j)
                        n_outer += 1
                outer_indptr[w * n_blocks + block + 1] = n_outer
        if shared:
            rows[n_rows : n_rows + n_hidden - first] = members[: n_hidden - first]
            n_rows += n_hidden - first
        else:
            bias, rows[n_rows] = n_rows, -1
            n_rows += 1
            for h in range(first, n_hidden):
                i = members[h - first]
                near_indices[n_near], near_data[n_near] = bias, 1.0
                n_near += 1
                for block in range(n_blocks):
                    for e in range(closed[i], closed[i + 1]):
                        j = others[e]
                        if kept[j] and _meets(block, n_blocks, i, j):
                            r = j + block * n_nodes
                            if row_mark[r] != c:
                                row_mark[r], row[r], rows[n_rows] = c, n_rows, r
                                n_rows += 1
                            near_indices[n_near] = row[r]
                            near_data[n_near] = _weight(graph.mixing, degree, i, j)
                            n_near += 1
                near_indptr[h + 1] = n_near
        hidden_indptr[c + 1], row_indptr[c + 1] = n_hidden, n_rows
        _add(nodes[indptr[c] : indptr[c + 1]], -1, graph, kept, degree)
    n_near_rows = 0 if shared else n_hidden
    outer, near = _cut(outer, len(wanted) * n_blocks, n_outer), _cut(near, n_near_rows, n_near)
    return Field(outer, near, hidden_indptr, row_indptr, rows[:n_rows])


@kernel(_nrt=True)
def learnt_features(field: Field, graph: ClosedGraph) -> tuple[Csr, Ints, Indices]:
    """Features of the rows, with a column for each that is not zero in a coalition, the first for its bias.

    Also gives the features behind the columns of each coalition (CSR); the bias is `n_features`.
    """
    out: Csr = _room_for(field, graph)
    _, indices, data = out
    x_indptr, x_indices, x_data = graph.features
    columns, column_indptr = np.empty(len(indices) + len(field.row_indptr), dtype=np.int32), field.row_indptr * 0
    column, mark = np.empty(graph.n_features, dtype=np.int64), np.full(graph.n_features, -1)
    n_columns = at = 0
    for c in range(len(field.row_indptr) - 1):
        bias, columns[n_columns] = n_columns, graph.n_features
        n_columns += 1
        for r in range(field.row_indptr[c], field.row_indptr[c + 1]):
            i = field.rows[r]
            if graph.shared or i < 0:
                indices[at], data[at] = bias, 1.0
                at += 1
            for k in range(x_indptr[i], x_indptr[i + 1] if i >= 0 else 0):
                f = x_indices[k]
                if mark[f] != c:
                    mark[f], column[f], columns[n_columns] = c, n_columns, f
                    n_columns += 1
                indices[at], data[at] = column[f], x_data[k]
                at += 1
        column_indptr[c + 1] = n_columns
    return out, column_indptr, columns[:n_columns]


@kernel(_nrt=True)
def seen_features(field: Field, graph: ClosedGraph, column_indptr: Ints, columns: Indices) -> Csr:
    """Features of the rows, by the columns of each coalition; features without one follow after all columns."""
    out: Csr = _room_for(field, graph)
    _, indices, data = out
    x_indptr, x_indices, x_data = graph.features
    column, mark = np.empty(graph.n_features + 1, dtype=np.int64), np.full(graph.n_features + 1, -1)
    at = 0
    for c in range(len(field.row_indptr) - 1):
        for k in range(column_indptr[c], column_indptr[c + 1]):
            mark[columns[k]], column[columns[k]] = c, k
        for r in range(field.row_indptr[c], field.row_indptr[c + 1]):
            i = field.rows[r]
            if graph.shared or i < 0:
                indices[at], data[at] = column_indptr[c], 1.0
                at += 1
            for k in range(x_indptr[i], x_indptr[i + 1] if i >= 0 else 0):
                f = x_indices[k]
                indices[at], data[at] = column[f] if mark[f] == c else len(columns) + f, x_data[k]
                at += 1
    return out


@kernel(_nrt=True)
def transpose(matrix: Csr, n_columns: int) -> Csr:
    """The transpose of a CSR matrix, rows ascending."""
    out: Csr = _empty(n_columns, len(matrix.indices))
    indptr, indices, data = out
    for j in matrix.indices:
        indptr[j + 1] += 1
    for j in range(n_columns):
        indptr[j + 1] += indptr[j]
    free = indptr[:-1].copy()
    for i in range(len(matrix.indptr) - 1):
        for e in range(matrix.indptr[i], matrix.indptr[i + 1]):
            j = matrix.indices[e]
            indices[free[j]], data[free[j]] = i, matrix.data[e]
            free[j] += 1
    return out


@kernel(_nrt=True)
def _add(coalition: Indices, step: int, graph: ClosedGraph, kept: AnyArray, degree: Ints) -> None:
    """Put a coalition into the graph, or take it out again (`step` −1): which nodes are present, and all degrees."""
    for i in coalition:
        if not graph.always[i]:
            kept[i] = step > 0
            for e in range(graph.indptr[i], graph.indptr[i + 1]):
                degree[graph.nodes[e]] += step


@part()
def _meets(block: int, n_blocks: int, i: int, j: int) -> bool:
    """Whether node `j` meets this block of weights at node `i`."""
    return n_blocks == 1 or (i == j) == (block == 0)


@part()
def _weight(mixing: int, degree: Ints, i: int, j: int) -> float:
    """Weight of node `j` at node `i`; degrees count the node itself."""
    if mixing == SYMMETRIC:
        return float(1 / np.sqrt(degree[i] * degree[j]))
    return 1 / (degree[i] - 1) if mixing == MEAN and i != j else 1.0


@kernel(_nrt=True)
def _room_for(field: Field, graph: ClosedGraph) -> Csr:
    """An empty matrix for the features of the rows, with its offsets."""
    indptr = np.zeros(len(field.rows) + 1, dtype=np.int64)
    for r, i in enumerate(field.rows):
        n = int(graph.shared) + graph.features.indptr[i + 1] - graph.features.indptr[i] if i >= 0 else 1
        indptr[r + 1] = indptr[r] + n
    return Csr(indptr, np.empty(indptr[-1], dtype=np.int32), np.empty(indptr[-1], dtype=np.float32))


@kernel(_nrt=True)
def _empty(n_rows: int, n_entries: int) -> Csr:
    return Csr(
        np.zeros(n_rows + 1, dtype=np.int64),
        np.empty(n_entries, dtype=np.int32),
        np.empty(n_entries, dtype=np.float32),
    )


@kernel(_nrt=True)
def _cut(matrix: Csr, n_rows: int, n_entries: int) -> Csr:
    return Csr(matrix.indptr[: n_rows + 1], matrix.indices[:n_entries], matrix.data[:n_entries])
