"""Slow, obvious support vector machines: the steps of Fan, Chen and Lin (2005) with shrinking, as libsvm takes them."""

from __future__ import annotations

from itertools import combinations
from math import exp, tanh

import numpy as np


def gamma_value(gamma, X):
    """`gamma` as scikit-learn reads it."""
    if gamma == "scale":
        return 1 / (X.shape[1] * X.var()) if X.var() != 0 else 1.0
    return 1 / X.shape[1] if gamma == "auto" else gamma


def power(x, n):
    """By squaring, whose last bit is not always that of `x**n`."""
    if n == 0:
        return 1.0
    rest = power(x * x, n // 2)
    return x * rest if n % 2 else rest


def kernel_value(kernel, a, b, gamma, degree, coef0):
    """The kernel of two rows."""
    if kernel == "rbf":
        return exp(-gamma * float(np.sum((a - b) ** 2)))
    product = float(np.sum(a * b))
    if kernel == "linear":
        return product
    if kernel == "poly":
        return power(gamma * product + coef0, degree)
    return tanh(gamma * product + coef0)


def minimise(Q, diagonal, p, y, C, tol, shrinking):
    """Minimise `αQα/2 + pα` where `yα = 0` and `0 ≤ α ≤ C`; returns α and the offset.

    The first `n_active` variables in `order` are looked at, and the order decides between equals; those behind are set
    aside. Their gradient is summed anew when they come back, from `at_bound`, what the variables at the bound `C` add
    to it, and from the variables between the bounds.
    """
    n = len(p)
    alpha, gradient, at_bound = [0.0] * n, [float(v) for v in p], [0.0] * n
    order, n_active, unshrunk = list(range(n)), n, False
    counter = min(n, 1000) + 1

    def may_rise(t):
        return alpha[t] < C if y[t] > 0 else alpha[t] > 0

    def may_fall(t):
        return alpha[t] > 0 if y[t] > 0 else alpha[t] < C

    def last_best(candidates):
        """The best of (value, variable), the last of equals; None if there is none."""
        best = None
        for value, t in candidates:
            if best is None or value >= best[0]:
                best = (value, t)
        return best

    def curvature(i, j):
        value = diagonal[i] + diagonal[j] - 2 * y[i] * y[j] * float(Q[i, j])
        return value if value > 0 else 1e-12

    def select():
        active = order[:n_active]
        first = last_best([(-y[t] * gradient[t], t) for t in active if may_rise(t)])
        if first is None:
            return None
        top, i = first
        violations = {t: top + y[t] * gradient[t] for t in active if may_fall(t)}
        second = last_best([(v * v / curvature(i, t), t) for t, v in violations.items() if v > 0])
        if second is None or max(violations.values()) < tol:
            return None
        return i, second[1]

    def take_back():
        nonlocal n_active
        free = [t for t in order[:n_active] if 0 < alpha[t] < C]
        for t in order[n_active:]:
            gradient[t] = at_bound[t] + p[t]
            for s in free:
                gradient[t] += alpha[s] * float(Q[s, t])
        n_active = n

    def shrink():
        nonlocal n_active, unshrunk
        active = order[:n_active]
        up = max([-y[t] * gradient[t] for t in active if may_rise(t)], default=-np.inf)
        down = max([y[t] * gradient[t] for t in active if may_fall(t)], default=-np.inf)
        if not unshrunk and up + down <= 10 * tol:
            unshrunk = True
            take_back()

        def settled(t):
            if not may_rise(t):
                return -y[t] * gradient[t] > up
            return not may_fall(t) and y[t] * gradient[t] > down

        i = 0
        while i < n_active:
            if settled(order[i]):
                n_active -= 1
                while n_active > i:
                    if not settled(order[n_active]):
                        order[i], order[n_active] = order[n_active], order[i]
                        break
                    n_active -= 1
            i += 1

    while True:
        counter -= 1
        if counter == 0:
            counter = min(n, 1000)
            if shrinking:
                shrink()
        pair = select()
        if pair is None:
            take_back()
            pair = select()
            if pair is None:
                break
            counter = 1
        i, j = pair
        old = alpha[i], alpha[j]
        step = (-y[i] * gradient[i] + y[j] * gradient[j]) / curvature(i, j)
        # Along the line, α_i + y_i s and α_j − y_j s; the first bound that is met is kept exactly.
        alpha[i], alpha[j] = clip(alpha[i], alpha[j], y[i], y[j], step, C)
        for t in range(n):
            gradient[t] += float(Q[i, t]) * (alpha[i] - old[0]) + float(Q[j, t]) * (alpha[j] - old[1])
            for s, before in zip(pair, old, strict=True):
                if before < C <= alpha[s]:
                    at_bound[t] += C * float(Q[s, t])
                if alpha[s] < C <= before:
                    at_bound[t] -= C * float(Q[s, t])

    signed = [y[t] * gradient[t] for t in range(n)]
    free = [t for t in order if 0 < alpha[t] < C]
    if free:
        return alpha, sum(signed[t] for t in free) / len(free)
    highest = min([signed[t] for t in order if may_rise(t)], default=np.inf)
    lowest = max([signed[t] for t in order if may_fall(t)], default=-np.inf)
    return alpha, (highest + lowest) / 2


def clip(a, b, sign_a, sign_b, step, C):
    """Move `a` by `sign_a·step` and `b` by `−sign_b·step`, no further than to 0 or `C`."""
    if sign_a != sign_b:
        difference, new_a, new_b = a - b, a + sign_a * step, b - sign_b * step
        if difference > 0 and new_b < 0:
            new_a, new_b = difference, 0.0
        if difference <= 0 and new_a < 0:
            new_a, new_b = 0.0, -difference
        if difference > 0 and new_a > C:
            new_a, new_b = C, C - difference
        if difference <= 0 and new_b > C:
            new_a, new_b = C + difference, C
        return new_a, new_b
    total, new_a, new_b = a + b, a + sign_a * step, b - sign_b * step
    if total > C and new_a > C:
        new_a, new_b = C, total - C
    if total <= C and new_b < 0:
        new_a, new_b = total, 0.0
    if total > C and new_b > C:
        new_a, new_b = total - C, C
    if total <= C and new_a < 0:
        new_a, new_b = 0.0, total
    return new_a, new_b


def values_between(X, Z, kernel, gamma, degree, coef0):
    """Kernel values of all pairs."""
    return np.array([[kernel_value(kernel, a, b, gamma, degree, coef0) for b in Z] for a in X])


def machine(K, p, y, C, tol, shrinking):
    """Train on kernel values that are rounded to single precision, but for the diagonal."""
    sign = np.array(y, dtype=np.float64)
    Q = (sign[:, None] * sign[None, :] * K).astype(np.float32)
    return minimise(Q, np.diag(K).tolist(), p, list(y), C, tol, shrinking)


def svc_decisions(K, codes, K_test, C=1.0, tol=1e-3, shrinking=True):
    """Decision values for each pair of classes (positive: the first), with the classes; for kernel matrices."""
    classes = sorted(set(codes.tolist()))
    out = {}
    for a, b in combinations(classes, 2):
        rows = np.concatenate([np.flatnonzero(codes == a), np.flatnonzero(codes == b)])
        y = [1 if codes[r] == a else -1 for r in rows]
        alpha, offset = machine(K[np.ix_(rows, rows)], [-1.0] * len(rows), y, C, tol, shrinking)
        out[a, b] = [
            sum(alpha[i] * y[i] * K_test[t, rows[i]] for i in range(len(rows))) - offset for t in range(len(K_test))
        ]
    return classes, out


def svc_prediction(classes, decisions, t, n_classes, source):
    """The row of a prediction, in the form that scores read."""
    votes, strength = dict.fromkeys(classes, 0), dict.fromkeys(classes, 0.0)
    for (a, b), values in decisions.items():
        first = values[t] > 0 if source == "label" else values[t] >= 0
        votes[a if first else b] += 1
        strength[a] += values[t]
        strength[b] -= values[t]
    out = np.zeros(n_classes)
    if source == "label":
        out[max(classes, key=lambda c: (votes[c], -c))] = 1
        return out
    if len(classes) == 2:
        decision = [strength[c] / 2 for c in classes]
    else:
        decision = [votes[c] + strength[c] / (3 * (abs(strength[c]) + 1)) for c in classes]
    if source == "margin":
        out[:] = min(decision)
        out[classes] = decision
        return out
    weight = np.exp(np.array(decision) - max(decision))
    out[classes] = weight / weight.sum()
    return out


def svr_predictions(K, y, K_test, C=1.0, epsilon=0.1, tol=1e-3, shrinking=True):
    """Predictions of support vector regression; every row has a variable that pulls up and one that pulls down."""
    n = len(y)
    p = [epsilon - v for v in y] + [epsilon + v for v in y]
    alpha, offset = machine(np.tile(K, (2, 2)), p, [1] * n + [-1] * n, C, tol, shrinking)
    return [sum((alpha[i] - alpha[n + i]) * K_test[t, i] for i in range(n)) - offset for t in range(len(K_test))]
