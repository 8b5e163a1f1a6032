"""Programs for Triton that train two-layer graph networks on a GPU, one network each.

A program cuts what its network sees out of the graph. It numbers the wanted nodes, then their neighbours (with which
they are the hidden rows), then the neighbours of these, so one list of neighbours serves all matrices and transposes.
Numbers come from the coalition alone: the first place where a node is found wins, whichever thread finds it.

Where entries of a matrix are read by other threads than those that wrote them, a barrier stands between.
"""

from __future__ import annotations

import triton
import triton.language as tl

# Room of a program for whole numbers, in arrays of `n_columns` entries, before that for the columns' rows.
COUNT, FREE, USED, START, END = (tl.constexpr(k) for k in range(5))
# Marks of nodes that have no number; a node with number `k` has the mark `-1 - k`, one that was just found its place.
ABSENT, MEMBER = tl.constexpr(2**30), tl.constexpr(2**30 + 1)
# Where a row's neighbours end, in arrays of `n_rows` entries after that of their beginnings.
WANTED, HIDDEN, ALL = (tl.constexpr(k) for k in range(1, 4))
# Rows whose neighbours are looked at together, and neighbours of each.
NODES, NEXT = tl.constexpr(32), tl.constexpr(16)


@triton.jit(
    do_not_specialize=[
        "n", "n_members", "n_nodes", "n_columns", "room", "int_room", "n_rows", "most_wanted", "n_entries",
        "weight_decay", "epochs",
    ]
)  # fmt: skip
def train_networks(
    indptr, neighbours, x_indptr, x_indices, x_data, initial, decayed, initial_second, rates, batch, scratch,
    int_scratch, counter, out, n, n_members, n_nodes, n_columns, room, int_room, n_rows, most_wanted, n_entries,
    weight_decay, epochs, n_classes: tl.constexpr, shared: tl.constexpr, H: tl.constexpr, C: tl.constexpr,
    B: tl.constexpr, K: tl.constexpr, W: tl.constexpr, U: tl.constexpr,
):  # fmt: skip
    """Train networks, the largest first, until none is left, and write their probabilities.

    `neighbours` are doubled, and odd if always present. `batch` holds the order of the coalitions, offsets of their
    members and of their tests, nodes and codes of the members, and nodes of the tests.
    """
    # Weights and both moments of a column lie side by side; a multiple of H, as entries are moved four at a time.
    first = scratch + tl.program_id(0).to(tl.int64) * room * H
    ones = first + 3 * n_columns * H  # rows × units
    twos = ones + n_rows * H
    errors = twos + n_rows * H  # wanted × units
    learnt = errors + most_wanted * H  # second layer and biases
    values = learnt + (C + 2) * H
    roots = values + n_entries
    column = int_scratch + tl.program_id(0).to(tl.int64) * int_room
    members = column + 5 * n_columns
    mark = members + n_entries
    local = mark + n_nodes
    row = local + n_rows
    links = row + 4 * n_rows
    for low in range(0, n_nodes, W):
        here = low + tl.arange(0, W)
        tl.store(mark + here, ABSENT, mask=here < n_nodes)
    tl.debug_barrier()
    taken = tl.atomic_add(counter, 1)
    while taken < n:
        c = tl.load(batch + taken)
        nodes = batch + 3 * n + 2
        member = tl.load(batch + n + c)
        size = tl.load(batch + n + c + 1) - member
        for scoring in range(2):  # a loop, so that cutting out is compiled once
            begin = tl.load(batch + n + scoring * (n + 1) + c)
            n_wanted = tl.load(batch + n + scoring * (n + 1) + c + 1) - begin
            wanted = nodes + scoring * 2 * n_members + begin
            n_hidden, n_seen = _cut(
                indptr, neighbours, wanted, n_wanted, mark, local, row, links, roots, n_rows, shared
            )
            if scoring == 0:
                n_used = _columns(x_indptr, x_indices, x_data, local, n_seen, n_columns, column, members, values, B, W)
                _start(initial, first, column, n_columns, n_used, H, B)
                _steps(
                    x_indptr, x_indices, x_data, initial_second, rates, wanted + n_members, first, ones, twos, errors,
                    column, members, values, local, row, links, roots, n_rows, n_wanted, n_hidden, n_seen, n_columns,
                    n_used, weight_decay, epochs, learnt, n_classes, shared, H, C, B, K, U,
                )  # fmt: skip
            else:
                _predict(
                    x_indptr, x_indices, x_data, decayed, first, ones, twos, column, local, row, links, roots, n_rows,
                    n_wanted, n_hidden, n_seen, learnt, out + begin.to(tl.int64) * n_classes,
                    n_classes, shared, H, C, B, K,
                )  # fmt: skip
            _forget(mark, local, n_seen, nodes + member, size, MEMBER - scoring)  # after scoring: ABSENT
        taken = tl.atomic_add(counter, 1)


@triton.jit
def _cut(indptr, neighbours, wanted, n_wanted, mark, local, row, links, roots, n_rows, shared: tl.constexpr):
    """Number what is seen from the wanted nodes, and list neighbours; says how many are hidden rows, how many rows."""
    for low in range(0, n_wanted, NODES):
        here = low + tl.arange(0, NODES)
        node = tl.load(wanted + here, mask=here < n_wanted, other=0)
        tl.store(local + here, node, mask=here < n_wanted)
        tl.store(mark + node, -1 - here, mask=here < n_wanted)
    tl.debug_barrier()
    whole = 0
    n_seen = n_wanted
    for _ in range(1 if shared else 2):
        n_found = _find_neighbours(indptr, neighbours, mark, local, whole, n_seen)
        whole = n_seen
        n_seen = n_found
    _link(indptr, neighbours, n_wanted, whole, n_seen, mark, local, row, links, roots, n_rows)
    return n_seen if shared else whole, n_seen


@triton.jit
def _find_neighbours(indptr, neighbours, mark, local, begin, end):
    """Number the neighbours of local nodes `begin` to `end` that have no number, from `end` on; says where they end."""
    each = tl.arange(0, NODES)[:, None] * NEXT + tl.arange(0, NEXT)[None, :]
    place = 0
    for r in range(begin, end, NODES):
        starts, ends = _ranges(indptr, local, r, end, NODES)
        for e in range(0, tl.max(ends - starts), NEXT):
            node, there, known = _look(neighbours, mark, starts, ends, e)
            tl.atomic_min(mark + node, place + each, mask=there & (known >= 0), sem="relaxed")
            place += NODES * NEXT
    tl.debug_barrier()
    place = 0
    n_found = end
    for r in range(begin, end, NODES):
        starts, ends = _ranges(indptr, local, r, end, NODES)
        for e in range(0, tl.max(ends - starts), NEXT):
            node, there, known = _look(neighbours, mark, starts, ends, e)
            found = (there & (known == place + each)).to(tl.int32)
            number = n_found - 1 + tl.reshape(tl.cumsum(tl.reshape(found, [NODES * NEXT]), 0), [NODES, NEXT])
            tl.store(local + number, node, mask=found > 0)
            tl.store(mark + node, -1 - number, mask=found > 0)
            n_found += tl.sum(found)
            place += NODES * NEXT
    tl.debug_barrier()
    return n_found


@triton.jit
def _link(indptr, neighbours, n_wanted, whole, n_seen, mark, local, row, links, roots, n_rows):
    """List the neighbours of each node: wanted ones, others below `whole` and, for nodes below it, all; 1/√degree."""
    n_links = 0
    for r in range(0, n_seen, NODES):
        here = r + tl.arange(0, NODES)
        starts, ends = _ranges(indptr, local, r, n_seen, NODES)
        degree = tl.zeros([NODES], tl.int32)
        below = tl.zeros([NODES], tl.int32)
        for e in range(0, tl.max(ends - starts), NEXT):
            _, there, known = _look(neighbours, mark, starts, ends, e)
            degree += tl.sum(there.to(tl.int32), 1)
            below += tl.sum((there & (known < 0) & (known >= -whole)).to(tl.int32), 1)
        count = tl.where(here < whole, degree, below)
        place = n_links + tl.cumsum(count, 0) - count
        n_links += tl.sum(count, 0)
        tl.store(roots + here, 1.0 / tl.sqrt(degree.to(tl.float32)), mask=here < n_seen)
        tl.store(row + here, place, mask=here < n_seen)
        least = 0
        most = n_wanted
        for k in range(3):
            for e in range(0, tl.max(ends - starts), NEXT):
                _, there, known = _look(neighbours, mark, starts, ends, e)
                chosen = there & (known < -least) & (known >= -most) & ((k < 2) | (here < whole))[:, None]
                chosen = chosen.to(tl.int32)
                tl.store(links + place[:, None] + tl.cumsum(chosen, 1) - 1, -1 - known, mask=chosen > 0)
                place += tl.sum(chosen, 1)
            tl.store(row + (k + 1) * n_rows + here, place, mask=here < n_seen)
            least = most
            most = whole if k == 0 else n_seen
    tl.debug_barrier()


@triton.jit
def _look(neighbours, mark, starts, ends, e):
    """Some neighbours of some nodes, whether each is there, and its mark."""
    at = starts[:, None] + e + tl.arange(0, NEXT)[None, :]
    more = at < ends[:, None]
    node = tl.load(neighbours + at, mask=more, other=0)
    known = tl.load(mark + (node >> 1), mask=more, other=ABSENT)
    return node >> 1, more & (((node & 1) == 1) | (known != ABSENT)), known


@triton.jit
def _ranges(indptr, local, i, end, B: tl.constexpr):
    """Where the entries of local nodes `i` to `i + B` begin and end in a CSR matrix of all nodes."""
    there = i + tl.arange(0, B) < end
    node = tl.load(local + i + tl.arange(0, B), mask=there, other=0)
    return tl.load(indptr + node, mask=there, other=0), tl.load(indptr + node + 1, mask=there, other=0)


@triton.jit
def _forget(mark, local, n_seen, nodes, size, members):
    """Take the numbers of local nodes away, and mark the members of the coalition anew."""
    for low in range(0, n_seen, NODES * NEXT):
        here = low + tl.arange(0, NODES * NEXT)
        node = tl.load(local + here, mask=here < n_seen, other=0)
        tl.store(mark + node, ABSENT, mask=here < n_seen)
    tl.debug_barrier()
    for low in range(0, size, NODES):
        here = low + tl.arange(0, NODES)
        node = tl.load(nodes + here, mask=here < size, other=0)
        tl.store(mark + node, members, mask=here < size)
    tl.debug_barrier()


@triton.jit
def _columns(
    x_indptr, x_indices, x_data, local, n_seen, n_columns, column, members, values, B: tl.constexpr, W: tl.constexpr
):  # fmt: skip
    """The columns that are not zero in a network's rows, and the rows of each, ascending."""
    some: tl.constexpr = W // 4
    each = tl.arange(0, W)
    for low in range(0, n_columns, W):
        tl.store(column + COUNT * n_columns + low + each, 0, mask=low + each < n_columns)
    tl.debug_barrier()
    for r in range(0, n_seen, B):
        starts, ends = _ranges(x_indptr, local, r, n_seen, B)
        for e in range(0, tl.max(ends - starts), 32):
            at = starts[:, None] + e + tl.arange(0, 32)[None, :]
            more = at < ends[:, None]
            f = tl.load(x_indices + at, mask=more, other=0)
            tl.atomic_add(column + COUNT * n_columns + f, 1, mask=more, sem="relaxed")
    tl.debug_barrier()
    n_entries = 0
    for low in range(0, n_columns, W):
        here = low + each
        counts = tl.load(column + COUNT * n_columns + here, mask=here < n_columns, other=0)
        starts = n_entries + tl.cumsum(counts, 0) - counts
        tl.store(column + FREE * n_columns + here, starts, mask=here < n_columns)
        n_entries += tl.sum(counts, 0)
    n_used = 0
    for k in tl.static_range(5):  # more than 8, 5 to 8, 3 to 4, 2, 1: those that are summed together are about as long
        for low in range(0, n_columns, W):
            here = low + each
            counts = tl.load(column + COUNT * n_columns + here, mask=here < n_columns, other=0)
            starts = tl.load(column + FREE * n_columns + here, mask=here < n_columns, other=0)
            chosen = (counts > 8 >> k) & ((counts <= 16 >> k) | (k == 0))
            place = column + n_used + tl.cumsum(chosen.to(tl.int32), 0) - 1
            tl.store(place + USED * n_columns, here, mask=chosen)
            tl.store(place + START * n_columns, starts, mask=chosen)
            tl.store(place + END * n_columns, starts + counts, mask=chosen)
            n_used += tl.sum(chosen.to(tl.int32), 0)
    tl.debug_barrier()
    for r in range(n_seen):  # a row has a column once: its entries find their places side by side
        node = tl.load(local + r)
        stop = tl.load(x_indptr + node + 1)
        for e in range(tl.load(x_indptr + node), stop, some):
            at = e + tl.arange(0, some)
            f = tl.load(x_indices + at, mask=at < stop, other=0)
            place = tl.load(column + FREE * n_columns + f, mask=at < stop, other=0)
            tl.store(members + place, r, mask=at < stop)
            tl.store(values + place, tl.load(x_data + at, mask=at < stop), mask=at < stop)
            tl.store(column + FREE * n_columns + f, place + 1, mask=at < stop)
        tl.debug_barrier()
    return n_used


@triton.jit
def _start(initial, first, column, n_columns, n_used, H: tl.constexpr, B: tl.constexpr):
    """Initial weights of the used columns, and moments of zero."""
    unit = tl.arange(0, H)[None, :]
    for u in range(0, n_used, B):
        there = u + tl.arange(0, B) < n_used
        f = tl.load(column + USED * n_columns + u + tl.arange(0, B), mask=there, other=0)
        weights = tl.load(initial + f[:, None] * H + unit, mask=there[:, None])
        at = first + f[:, None] * (3 * H) + unit
        tl.store(at, weights, mask=there[:, None])
        tl.store(at + H, weights * 0, mask=there[:, None])
        tl.store(at + 2 * H, weights * 0, mask=there[:, None])
    tl.debug_barrier()


@triton.jit
def _steps(
    x_indptr, x_indices, x_data, initial_second, rates, codes, first, ones, twos, errors, column, members, values,
    local, row, links, roots, n_rows, n_wanted, n_hidden, n_seen, n_columns, n_used, weight_decay, epochs, learnt,
    n_classes: tl.constexpr, shared: tl.constexpr, H: tl.constexpr, C: tl.constexpr, B: tl.constexpr, K: tl.constexpr,
    U: tl.constexpr,
):  # fmt: skip
    """All steps of Adam on a network, and what it has learnt in its second layer and both biases."""
    unit = tl.arange(0, H)
    one_class = tl.arange(0, C)
    second = tl.load(initial_second + unit[:, None] * C + one_class[None, :])
    second_m = tl.zeros([H, C], tl.float32)
    second_v = tl.zeros([H, C], tl.float32)
    last = tl.zeros([C], tl.float32)
    last_m = tl.zeros([C], tl.float32)
    last_v = tl.zeros([C], tl.float32)
    bias = tl.zeros([H], tl.float32)
    bias_m = tl.zeros([H], tl.float32)
    bias_v = tl.zeros([H], tl.float32)
    share = 1.0 / n_wanted
    for step in range(epochs):
        rate, scale = tl.load(rates + 2 * step), tl.load(rates + 2 * step + 1)
        # Forward: rows to `ones`, hidden units to `twos`, the errors sent back to `errors`; `D^-½ (A + I) D^-½` is
        # taken as sums over neighbours of what was scaled by its own root, to be scaled by the other.
        for r in range(0, n_seen, B):
            starts, ends = _ranges(x_indptr, local, r, n_seen, B)
            root = _column(roots, r, n_seen, B)
            found = _product(starts, ends, x_indices, x_data, first, 3 * H, H, B, 4)
            if shared:
                _write(twos, r, n_seen, tl.maximum(found + bias[None, :], 0.0) * root, H, B)
            else:
                _write(ones, r, n_seen, found * root, H, B)
        tl.debug_barrier()
        if not shared:
            for h in range(0, n_hidden, B):
                root = _column(roots, h, n_hidden, B)
                found = _sums(row, n_rows, ALL, links, h, n_hidden, ones, H, B) * root
                _write(twos, h, n_hidden, tl.maximum(found + bias[None, :], 0.0) * root, H, B)
            tl.debug_barrier()
        second_g = tl.zeros([H, C], tl.float32)
        last_g = tl.zeros([C], tl.float32)
        for w in range(0, n_wanted, K):
            root = _column(roots, w, n_wanted, K)
            mixed = _sums(row, n_rows, ALL, links, w, n_wanted, twos, H, K) * root
            there = w + tl.arange(0, K) < n_wanted
            code = tl.load(codes + w + tl.arange(0, K), mask=there, other=0)
            error = _softmax(mixed, second, last, n_classes, C) - (code[:, None] == one_class[None, :]).to(tl.float32)
            error = tl.where(there[:, None], error * share, 0.0)
            second_g += tl.dot(tl.trans(mixed), error, input_precision="ieee")
            last_g += tl.sum(error, 0)
            _write(errors, w, n_wanted, tl.dot(error, tl.trans(second), input_precision="ieee") * root, H, K)
        tl.debug_barrier()
        # Backward: slopes of hidden units to `twos` (their rows are read by those who write them), of rows to `ones`.
        bias_g = tl.zeros([H], tl.float32)
        for h in range(0, n_hidden, B):
            root = _column(roots, h, n_hidden, B)
            back = _sums(row, n_rows, WANTED, links, h, n_hidden, errors, H, B) * root
            there = (h + tl.arange(0, B) < n_hidden)[:, None]
            at = (h + tl.arange(0, B))[:, None] * H + unit[None, :]
            back = tl.where(tl.load(twos + at, mask=there, other=0.0) > 0, back, 0.0)
            bias_g += tl.sum(back, 0)
            tl.store(twos + at, back if shared else back * root, mask=there)
        tl.debug_barrier()
        if not shared:
            for r in range(0, n_seen, B):
                root = _column(roots, r, n_seen, B)
                _write(ones, r, n_seen, _sums(row, n_rows, HIDDEN, links, r, n_seen, twos, H, B) * root, H, B)
            tl.debug_barrier()
        slopes = twos if shared else ones
        for u in range(0, n_used, B):
            there = u + tl.arange(0, B) < n_used
            place = column + u + tl.arange(0, B)
            f = tl.load(place + USED * n_columns, mask=there, other=0)
            starts = tl.load(place + START * n_columns, mask=there, other=0)
            ends = tl.load(place + END * n_columns, mask=there, other=0)
            at = first + f[:, None] * (3 * H) + unit[None, :]
            weights = tl.load(at, mask=there[:, None], other=0.0)
            m = tl.load(at + H, mask=there[:, None], other=0.0)
            v = tl.load(at + 2 * H, mask=there[:, None], other=0.0)
            slope = _product(starts, ends, members, values, slopes, H, H, B, U)
            weights, m, v = _adam(weights, m, v, slope, weight_decay, rate, scale)
            tl.store(at, weights, mask=there[:, None])
            tl.store(at + H, m, mask=there[:, None])
            tl.store(at + 2 * H, v, mask=there[:, None])
        second, second_m, second_v = _adam(second, second_m, second_v, second_g, weight_decay, rate, scale)
        last, last_m, last_v = _adam(last, last_m, last_v, last_g, weight_decay, rate, scale)
        bias, bias_m, bias_v = _adam(bias, bias_m, bias_v, bias_g, weight_decay, rate, scale)
        tl.debug_barrier()
    tl.store(learnt + unit[:, None] * C + one_class[None, :], second)
    tl.store(learnt + H * C + unit, bias)
    tl.store(learnt + H * C + H + one_class, last)
    tl.debug_barrier()


@triton.jit
def _predict(
    x_indptr, x_indices, x_data, decayed, first, ones, twos, column, local, row, links, roots, n_rows, n_wanted,
    n_hidden, n_seen, learnt, out,
    n_classes: tl.constexpr, shared: tl.constexpr, H: tl.constexpr, C: tl.constexpr, B: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Probabilities for the test nodes of a network."""
    unit = tl.arange(0, H)[None, :]
    one_class = tl.arange(0, C)[None, :]
    bias = tl.load(learnt + H * C + unit)
    for r in range(0, n_seen, B):
        starts, ends = _ranges(x_indptr, local, r, n_seen, B)
        root = _column(roots, r, n_seen, B)
        found = tl.zeros([B, H], tl.float32)
        for e in range(tl.max(ends - starts)):
            more = starts + e < ends
            f = tl.load(x_indices + starts + e, mask=more, other=0)
            x = tl.load(x_data + starts + e, mask=more, other=0.0)
            used = tl.load(column + f, mask=more, other=0) > 0  # COUNT
            weights = tl.load(first + f[:, None] * (3 * H) + unit, mask=(more & used)[:, None], other=0.0)
            weights += tl.load(decayed + f[:, None] * H + unit, mask=(more & ~used)[:, None], other=0.0)
            found += x[:, None] * weights
        if shared:
            _write(twos, r, n_seen, tl.maximum(found + bias, 0.0) * root, H, B)
        else:
            _write(ones, r, n_seen, found * root, H, B)
    tl.debug_barrier()
    if not shared:
        for h in range(0, n_hidden, B):
            root = _column(roots, h, n_hidden, B)
            found = _sums(row, n_rows, ALL, links, h, n_hidden, ones, H, B) * root
            _write(twos, h, n_hidden, tl.maximum(found + bias, 0.0) * root, H, B)
        tl.debug_barrier()
    second = tl.load(learnt + tl.arange(0, H)[:, None] * C + one_class)
    last = tl.load(learnt + H * C + H + tl.arange(0, C))
    for w in range(0, n_wanted, K):
        mixed = _sums(row, n_rows, ALL, links, w, n_wanted, twos, H, K) * _column(roots, w, n_wanted, K)
        found = _softmax(mixed, second, last, n_classes, C)
        at = (w + tl.arange(0, K))[:, None]
        tl.store(out + at * n_classes + one_class, found, mask=(at < n_wanted) & (one_class < n_classes))
    tl.debug_barrier()


@triton.jit
def _sums(row, n_rows, until: tl.constexpr, links, i, end, dense, H: tl.constexpr, B: tl.constexpr):
    """Sums of the rows of a dense matrix over the first neighbours of nodes `i` to `i + B`; four at once."""
    unit = tl.arange(0, H)[None, :]
    there = i + tl.arange(0, B) < end
    starts = tl.load(row + i + tl.arange(0, B), mask=there, other=0)
    ends = tl.load(row + until * n_rows + i + tl.arange(0, B), mask=there, other=0)
    found = tl.zeros([B, H], tl.float32)
    for e in range(0, tl.max(ends - starts), 4):
        for k in tl.static_range(4):
            more = starts + e + k < ends
            j = tl.load(links + starts + e + k, mask=more, other=0)
            found += tl.load(dense + j[:, None] * H + unit, mask=more[:, None], other=0.0)
    return found


@triton.jit
def _column(array, i, end, B: tl.constexpr):
    """Entries `i` to `i + B` of an array below each other."""
    here = i + tl.arange(0, B)
    return tl.load(array + here, mask=here < end, other=0.0)[:, None]


@triton.jit
def _product(
    starts, ends, indices, data, dense, stride: tl.constexpr, H: tl.constexpr, B: tl.constexpr, U: tl.constexpr
):  # fmt: skip
    """Rows of a sparse matrix times a dense one, whose rows lie `stride` apart; `U` at once."""
    unit = tl.arange(0, H)[None, :]
    found = tl.zeros([B, H], tl.float32)
    for e in range(0, tl.max(ends - starts), U):
        for k in tl.static_range(U):
            more = starts + e + k < ends
            i = tl.load(indices + starts + e + k, mask=more, other=0)
            x = tl.load(data + starts + e + k, mask=more, other=0.0)
            found += x[:, None] * tl.load(dense + i[:, None] * stride + unit, mask=more[:, None], other=0.0)
    return found


@triton.jit
def _write(dense, i, end, rows, H: tl.constexpr, B: tl.constexpr):
    """Write rows to a dense matrix, from row `i` on."""
    at = (i + tl.arange(0, B))[:, None]
    tl.store(dense + at * H + tl.arange(0, H)[None, :], rows, mask=at < end)


@triton.jit
def _softmax(mixed, second, last, n_classes: tl.constexpr, C: tl.constexpr):
    logits = tl.dot(mixed, second, input_precision="ieee") + last[None, :]
    logits = tl.where(tl.arange(0, C)[None, :] < n_classes, logits, float("-inf"))
    found = tl.exp(logits - tl.max(logits, 1)[:, None])
    return found / tl.sum(found, 1)[:, None]


@triton.jit
def _adam(weights, m, v, slope, weight_decay, rate, scale):
    """One step of Adam, as PyTorch takes it: weight decay is part of the slope."""
    slope += weight_decay * weights
    m = 0.9 * m + 0.1 * slope
    v = 0.999 * v + 0.001 * slope * slope
    return weights - rate * m / (tl.sqrt(v) * scale + 1e-8), m, v
