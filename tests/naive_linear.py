"""Slow, obvious twins of the linear trainers: the loss written down, its minimum found with all second derivatives."""

from __future__ import annotations

import numpy as np


def ridge(X, y, alpha, intercept):
    """Coefficients and intercept by the normal equations."""
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    mean_x, mean_y = (X.mean(axis=0), y.mean()) if intercept else (np.zeros(X.shape[1]), 0.0)
    centred = X - mean_x
    w = np.linalg.solve(centred.T @ centred + alpha * np.eye(X.shape[1]), centred.T @ (y - mean_y))
    return w, mean_y - mean_x @ w


def log_loss(theta, X, y, C, n_columns, intercept):
    """Loss, gradient and second derivatives of softmax regression (`n_columns` ≥ 3) or of logistic regression (1)."""
    n = len(X)
    A = np.column_stack([X, np.ones(n)]) if intercept else X
    width = A.shape[1]
    W = theta.reshape(n_columns, width)
    penalty = np.ones(width) / C
    if intercept:
        penalty[-1] = 0
    F = A @ W.T
    if n_columns == 1:
        F = np.column_stack([np.zeros(n), F[:, 0]])
    F = F - F.max(axis=1, keepdims=True)
    P = np.exp(F) / np.exp(F).sum(axis=1, keepdims=True)
    hit = np.zeros_like(P)
    hit[np.arange(n), y] = 1
    loss = -np.log(P[np.arange(n), y]).sum() + 0.5 * (penalty * W**2).sum()
    classes = [1] if n_columns == 1 else list(range(n_columns))
    gradient = np.concatenate([A.T @ (P - hit)[:, c] + penalty * W[i] for i, c in enumerate(classes)])
    hessian = np.zeros((n_columns * width, n_columns * width))
    for i, c in enumerate(classes):
        for j, d in enumerate(classes):
            weight = P[:, c] * ((c == d) - P[:, d])
            block = (A * weight[:, None]).T @ A + (np.diag(penalty) if c == d else 0)
            hessian[i * width : (i + 1) * width, j * width : (j + 1) * width] = block
    return loss, gradient, hessian


def logistic(X, y, C, intercept):
    """Coefficients (one row for two classes, else one a class) and intercepts at the least loss, by damped Newton."""
    X, y = np.asarray(X, dtype=float), np.asarray(y)
    m = int(y.max()) + 1
    n_columns = 1 if m == 2 else m
    width = X.shape[1] + intercept
    theta = np.zeros(n_columns * width)
    loss, gradient, hessian = log_loss(theta, X, y, C, n_columns, intercept)
    for _ in range(500):
        # Softmax does not see a constant that is added to all intercepts: the least solution.
        step = -np.linalg.lstsq(hessian, gradient, rcond=1e-14)[0]
        size = 1.0
        while size > 1e-12:
            found = log_loss(theta + size * step, X, y, C, n_columns, intercept)
            if found[0] <= loss + 1e-4 * size * (gradient @ step):
                break
            size /= 2
        if size <= 1e-12 or np.abs(size * step).max() < 1e-13:
            break
        theta = theta + size * step
        loss, gradient, hessian = found
    W = theta.reshape(n_columns, width)
    return (W[:, :-1], W[:, -1]) if intercept else (W, np.zeros(n_columns))


def probabilities(X, y, X_test, C, intercept, n_classes):
    """Probabilities of test rows; classes that `y` lacks have none."""
    present, codes = np.unique(y, return_inverse=True)
    W, b = logistic(X, codes, C, intercept)
    F = np.asarray(X_test, dtype=float) @ W.T + b
    if len(present) == 2:
        F = np.column_stack([np.zeros(len(F)), F[:, 0]])
    F -= F.max(axis=1, keepdims=True)
    out = np.zeros((len(F), n_classes))
    out[:, present] = np.exp(F) / np.exp(F).sum(axis=1, keepdims=True)
    return out
