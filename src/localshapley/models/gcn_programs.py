"""Programs for Triton that train two-layer graph networks on a GPU, one network each.

Where entries of a matrix are read by other threads than those that wrote them, a barrier stands between.
"""

from __future__ import annotations

import triton
import triton.language as tl

# The matrices of a batch, as they lie in its header: offsets of `indptr`, `indices` and `data`.
NEAR, NEAR_T, OUTER, OUTER_T, SEEN_NEAR, SEEN_OUTER = (tl.constexpr(3 * k) for k in range(6))
# Then the offsets of further arrays.
ROW_INDPTR, HIDDEN_INDPTR, WANTED_INDPTR, ROWS, CODES = (tl.constexpr(18 + k) for k in range(5))
SEEN_ROW_INDPTR, SEEN_HIDDEN_INDPTR, SEEN_INDPTR, SEEN_ROWS, ORDER = (tl.constexpr(23 + k) for k in range(5))
HEADER = 28
# Room of a program for whole numbers, in arrays of `n_columns` entries, before that for the columns' rows.
COUNT, FREE, USED, START, END = (tl.constexpr(k) for k in range(5))


@triton.jit(do_not_specialize=["n", "n_columns", "room", "int_room", "n_rows", "n_wanted", "weight_decay", "epochs"])
def train_networks(
    x_indptr, x_indices, x_data, initial, decayed, initial_second, rates, ints, floats, scratch, int_scratch, counter,
    out, n, n_columns, room, int_room, n_rows, n_wanted, weight_decay, epochs,
    n_classes: tl.constexpr, shared: tl.constexpr, H: tl.constexpr, C: tl.constexpr, B: tl.constexpr, K: tl.constexpr,
    W: tl.constexpr, U: tl.constexpr,
):  # fmt: skip
    """Train networks, the largest first, until none is left, and write their probabilities."""
    first = scratch + tl.program_id(0).to(tl.int64) * room * H  # a multiple of H: entries are moved four at a time
    ones = first + 3 * n_columns * H  # rows × units
    twos = ones + n_rows * H
    errors = twos + n_rows * H  # wanted × units
    values = errors + n_wanted * H
    column = int_scratch + tl.program_id(0).to(tl.int64) * int_room
    members = column + 5 * n_columns
    taken = tl.atomic_add(counter, 1)
    while taken < n:
        c = tl.load(ints + tl.load(ints + ORDER) + taken)
        n_used = _columns(x_indptr, x_indices, x_data, ints, c, n_columns, column, members, values, shared, B, W)
        _start(initial, first, column, n_columns, n_used, H, B)
        second, last, bias = _steps(
            x_indptr, x_indices, x_data, initial_second, rates, ints, floats, c, first, ones, twos, errors, column,
            members, values, n_columns, n_used, weight_decay, epochs, n_classes, shared, H, C, B, K, U,
        )  # fmt: skip
        _predict(
            x_indptr, x_indices, x_data, decayed, ints, floats, c, first, ones, twos, column, second, last, bias, out,
            n_classes, shared, H, C, B, K,
        )  # fmt: skip
        tl.debug_barrier()
        taken = tl.atomic_add(counter, 1)


@triton.jit
def _columns(
    x_indptr, x_indices, x_data, ints, c, n_columns, column, members, values,
    shared: tl.constexpr, B: tl.constexpr, W: tl.constexpr,
):  # fmt: skip
    """The columns that are not zero in a network's rows, and the rows of each, ascending."""
    some: tl.constexpr = W // 4
    each = tl.arange(0, W)
    for low in range(0, n_columns, W):
        tl.store(column + COUNT * n_columns + low + each, 0, mask=low + each < n_columns)
    tl.debug_barrier()
    rows = ints + tl.load(ints + ROWS)
    begin = tl.load(ints + tl.load(ints + ROW_INDPTR) + c) + (0 if shared else 1)
    end = tl.load(ints + tl.load(ints + ROW_INDPTR) + c + 1)
    for r in range(begin, end, B):
        there = r + tl.arange(0, B) < end
        node = tl.load(rows + r + tl.arange(0, B), mask=there, other=0)
        starts = tl.load(x_indptr + node, mask=there, other=0)
        ends = tl.load(x_indptr + node + 1, mask=there, other=0)
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
    for r in range(begin, end):  # a row has a column once: its entries find their places side by side
        node = tl.load(rows + r)
        stop = tl.load(x_indptr + node + 1)
        for e in range(tl.load(x_indptr + node), stop, some):
            at = e + tl.arange(0, some)
            f = tl.load(x_indices + at, mask=at < stop, other=0)
            place = tl.load(column + FREE * n_columns + f, mask=at < stop, other=0)
            tl.store(members + place, r - begin, mask=at < stop)
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
        at = f[:, None] * H + unit
        weights = tl.load(initial + at, mask=there[:, None])
        tl.store(first + at, weights, mask=there[:, None])
        tl.store(first + n_columns * H + at, weights * 0, mask=there[:, None])
        tl.store(first + 2 * n_columns * H + at, weights * 0, mask=there[:, None])
    tl.debug_barrier()


@triton.jit
def _steps(
    x_indptr, x_indices, x_data, initial_second, rates, ints, floats, c, first, ones, twos, errors, column, members,
    values, n_columns, n_used, weight_decay, epochs, n_classes: tl.constexpr, shared: tl.constexpr,
    H: tl.constexpr, C: tl.constexpr, B: tl.constexpr, K: tl.constexpr, U: tl.constexpr,
):  # fmt: skip
    """All steps of Adam on a network; returns its second layer, and both biases."""
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
    row = tl.load(ints + tl.load(ints + ROW_INDPTR) + c) + (0 if shared else 1)
    last_row = tl.load(ints + tl.load(ints + ROW_INDPTR) + c + 1)
    hidden = tl.load(ints + tl.load(ints + HIDDEN_INDPTR) + c)
    last_hidden = tl.load(ints + tl.load(ints + HIDDEN_INDPTR) + c + 1)
    wanted = tl.load(ints + tl.load(ints + WANTED_INDPTR) + c)
    last_wanted = tl.load(ints + tl.load(ints + WANTED_INDPTR) + c + 1)
    share = 1.0 / (last_wanted - wanted)
    for step in range(epochs):
        rate, scale = tl.load(rates + 2 * step), tl.load(rates + 2 * step + 1)
        # Forward: rows to `ones`, hidden units to `twos`, the errors sent back to `errors`.
        rows = ints + tl.load(ints + ROWS)
        for r in range(row, last_row, B):
            there = r + tl.arange(0, B) < last_row
            node = tl.load(rows + r + tl.arange(0, B), mask=there, other=0)
            starts = tl.load(x_indptr + node, mask=there, other=0)
            ends = tl.load(x_indptr + node + 1, mask=there, other=0)
            found = _product(starts, ends, x_indices, x_data, 0, first, H, B, 4)
            if shared:
                found = tl.maximum(found + bias[None, :], 0.0)
                _write(twos, r - row, last_row - row, found, H, B)
            else:
                _write(ones, r - row, last_row - row, found, H, B)
        tl.debug_barrier()
        if not shared:
            for h in range(hidden, last_hidden, B):
                found = _rows(ints, floats, NEAR, h, last_hidden, 1, row, ones, H, B)
                _write(twos, h - hidden, last_hidden - hidden, tl.maximum(found + bias[None, :], 0.0), H, B)
            tl.debug_barrier()
        second_g = tl.zeros([H, C], tl.float32)
        last_g = tl.zeros([C], tl.float32)
        for w in range(wanted, last_wanted, K):
            mixed = _rows(ints, floats, OUTER, w, last_wanted, 0, hidden, twos, H, K)
            there = w + tl.arange(0, K) < last_wanted
            code = tl.load(ints + tl.load(ints + CODES) + w + tl.arange(0, K), mask=there, other=0)
            error = _softmax(mixed, second, last, n_classes, C) - (code[:, None] == one_class[None, :]).to(tl.float32)
            error = tl.where(there[:, None], error * share, 0.0)
            second_g += tl.dot(tl.trans(mixed), error, input_precision="ieee")
            last_g += tl.sum(error, 0)
            back = tl.dot(error, tl.trans(second), input_precision="ieee")
            _write(errors, w - wanted, last_wanted - wanted, back, H, K)
        tl.debug_barrier()
        # Backward: slopes of hidden units to `twos` (their rows are read by those who write them), of rows to `ones`.
        bias_g = tl.zeros([H], tl.float32)
        for h in range(hidden, last_hidden, B):
            back = _rows(ints, floats, OUTER_T, h, last_hidden, 0, wanted, errors, H, B)
            there = (h + tl.arange(0, B) < last_hidden)[:, None]
            at = (h - hidden + tl.arange(0, B))[:, None] * H + unit[None, :]
            back = tl.where(tl.load(twos + at, mask=there, other=0.0) > 0, back, 0.0)
            bias_g += tl.sum(back, 0)
            tl.store(twos + at, back, mask=there)
        tl.debug_barrier()
        if not shared:
            for r in range(row, last_row, B):
                found = _rows(ints, floats, NEAR_T, r, last_row, 0, hidden, twos, H, B)
                _write(ones, r - row, last_row - row, found, H, B)
            tl.debug_barrier()
        slopes = twos if shared else ones
        for u in range(0, n_used, B):
            there = u + tl.arange(0, B) < n_used
            place = column + u + tl.arange(0, B)
            f = tl.load(place + USED * n_columns, mask=there, other=0)
            starts = tl.load(place + START * n_columns, mask=there, other=0)
            ends = tl.load(place + END * n_columns, mask=there, other=0)
            at = first + f[:, None] * H + unit[None, :]
            weights = tl.load(at, mask=there[:, None], other=0.0)
            m = tl.load(at + n_columns * H, mask=there[:, None], other=0.0)
            v = tl.load(at + 2 * n_columns * H, mask=there[:, None], other=0.0)
            slope = _product(starts, ends, members, values, 0, slopes, H, B, U)
            weights, m, v = _adam(weights, m, v, slope, weight_decay, rate, scale)
            tl.store(at, weights, mask=there[:, None])
            tl.store(at + n_columns * H, m, mask=there[:, None])
            tl.store(at + 2 * n_columns * H, v, mask=there[:, None])
        second, second_m, second_v = _adam(second, second_m, second_v, second_g, weight_decay, rate, scale)
        last, last_m, last_v = _adam(last, last_m, last_v, last_g, weight_decay, rate, scale)
        bias, bias_m, bias_v = _adam(bias, bias_m, bias_v, bias_g, weight_decay, rate, scale)
        tl.debug_barrier()
    return second, last, bias


@triton.jit
def _predict(
    x_indptr, x_indices, x_data, decayed, ints, floats, c, first, ones, twos, column, second, last, bias, out,
    n_classes: tl.constexpr, shared: tl.constexpr, H: tl.constexpr, C: tl.constexpr, B: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Probabilities for the test nodes of a network."""
    unit = tl.arange(0, H)[None, :]
    rows = ints + tl.load(ints + SEEN_ROWS)
    row = tl.load(ints + tl.load(ints + SEEN_ROW_INDPTR) + c) + (0 if shared else 1)
    last_row = tl.load(ints + tl.load(ints + SEEN_ROW_INDPTR) + c + 1)
    hidden = tl.load(ints + tl.load(ints + SEEN_HIDDEN_INDPTR) + c)
    last_hidden = tl.load(ints + tl.load(ints + SEEN_HIDDEN_INDPTR) + c + 1)
    wanted = tl.load(ints + tl.load(ints + SEEN_INDPTR) + c)
    last_wanted = tl.load(ints + tl.load(ints + SEEN_INDPTR) + c + 1)
    for r in range(row, last_row, B):
        there = r + tl.arange(0, B) < last_row
        node = tl.load(rows + r + tl.arange(0, B), mask=there, other=0)
        starts = tl.load(x_indptr + node, mask=there, other=0)
        ends = tl.load(x_indptr + node + 1, mask=there, other=0)
        found = tl.zeros([B, H], tl.float32)
        for e in range(tl.max(ends - starts)):
            more = starts + e < ends
            f = tl.load(x_indices + starts + e, mask=more, other=0)
            x = tl.load(x_data + starts + e, mask=more, other=0.0)
            used = tl.load(column + f, mask=more, other=0) > 0  # COUNT
            weights = tl.load(first + f[:, None] * H + unit, mask=(more & used)[:, None], other=0.0)
            weights += tl.load(decayed + f[:, None] * H + unit, mask=(more & ~used)[:, None], other=0.0)
            found += x[:, None] * weights
        if shared:
            _write(twos, r - row, last_row - row, tl.maximum(found + bias[None, :], 0.0), H, B)
        else:
            _write(ones, r - row, last_row - row, found, H, B)
    tl.debug_barrier()
    if not shared:
        for h in range(hidden, last_hidden, B):
            found = _rows(ints, floats, SEEN_NEAR, h, last_hidden, 1, row, ones, H, B)
            _write(twos, h - hidden, last_hidden - hidden, tl.maximum(found + bias[None, :], 0.0), H, B)
        tl.debug_barrier()
    for w in range(wanted, last_wanted, K):
        mixed = _rows(ints, floats, SEEN_OUTER, w, last_wanted, 0, hidden, twos, H, K)
        found = _softmax(mixed, second, last, n_classes, C)
        at = (w + tl.arange(0, K))[:, None]
        one_class = tl.arange(0, C)[None, :]
        tl.store(out + at * n_classes + one_class, found, mask=(at < last_wanted) & (one_class < n_classes))


@triton.jit
def _rows(
    ints, floats, matrix: tl.constexpr, i, end, skipped: tl.constexpr, base, dense, H: tl.constexpr, B: tl.constexpr
):  # fmt: skip
    """Rows `i` to `i + B` of one of the batch's matrices, without their first entries, times a dense matrix."""
    indptr = ints + tl.load(ints + matrix)
    there = i + tl.arange(0, B) < end
    starts = tl.load(indptr + i + tl.arange(0, B), mask=there, other=0) + skipped
    ends = tl.load(indptr + i + 1 + tl.arange(0, B), mask=there, other=0)
    indices = ints + tl.load(ints + matrix + 1)
    return _product(starts, ends, indices, floats + tl.load(ints + matrix + 2), base, dense, H, B, 4)


@triton.jit
def _product(starts, ends, indices, data, base, dense, H: tl.constexpr, B: tl.constexpr, U: tl.constexpr):
    """Rows of a sparse matrix times a dense one, whose first row is column `base` of the sparse one; `U` at once."""
    unit = tl.arange(0, H)[None, :]
    found = tl.zeros([B, H], tl.float32)
    for e in range(0, tl.max(ends - starts), U):
        for k in tl.static_range(U):
            more = starts + e + k < ends
            i = tl.load(indices + starts + e + k, mask=more, other=0) - base
            x = tl.load(data + starts + e + k, mask=more, other=0.0)
            found += x[:, None] * tl.load(dense + i[:, None] * H + unit, mask=more[:, None], other=0.0)
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
