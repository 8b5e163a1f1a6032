"""Models by name: scikit-learn estimators with the settings that most people start from."""

from __future__ import annotations

from typing import Any

from localshapley.errors import unknown_name

NAMES = ("forest", "knn", "logistic", "ridge", "svm", "tree")


def named(name: str, *, regression: bool) -> Any:
    """Return an unfitted estimator for one of `NAMES`, a classifier or a regressor.

    >>> named("knn", regression=False)
    KNeighborsClassifier()
    """
    if name not in NAMES:
        raise unknown_name("model", name, NAMES)
    if name in ("knn", "tree", "forest", "svm"):
        from sklearn import ensemble, neighbors, svm, tree

        pairs: dict[str, tuple[Any, Any]] = {
            "knn": (neighbors.KNeighborsClassifier(), neighbors.KNeighborsRegressor()),
            "tree": (tree.DecisionTreeClassifier(random_state=0), tree.DecisionTreeRegressor(random_state=0)),
            "forest": (
                ensemble.RandomForestClassifier(random_state=0),
                ensemble.RandomForestRegressor(random_state=0),
            ),
            "svm": (svm.SVC(), svm.SVR()),
        }
        return pairs[name][regression]
    from sklearn.linear_model import LogisticRegression, Ridge

    if (name == "ridge") != regression:
        kind, other = ("regression", "logistic") if regression else ("classification", "ridge")
        raise unknown_name(f"model for {kind}", name, [n for n in NAMES if n != other and n != name])
    return Ridge() if regression else LogisticRegression(max_iter=1000)
