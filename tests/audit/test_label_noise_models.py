"""Label-noise models: how they rank, how sure they are, and how many labels they think are wrong."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_friedman1
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import localshapley as ls
from localshapley.audit import label_noise_models
from localshapley.audit.label_noise_models import score_labels, score_numbers
from localshapley.audit.noise_rates import two_kinds
from localshapley.data.row_digests import digest_cells, digest_labels


def with_flips(load, rate, seed=0, n=None):
    """Rows, labels of which a share is wrong, and which."""
    X, y = load(return_X_y=True)
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(y))[:n]
    X, y = X[rows], y[rows]
    wrong = np.zeros(len(y), dtype=bool)
    wrong[rng.choice(len(y), round(rate * len(y)), replace=False)] = True
    n_classes = y.max() + 1
    return X, np.where(wrong, (y + rng.integers(1, n_classes, len(y))) % n_classes, y), wrong, y


@pytest.fixture(scope="module")
def wine():
    X, y, wrong, true = with_flips(load_wine, 0.15)
    return X, y, wrong, true, score_labels(X, y)


def margin(p, y):
    own = p[np.arange(len(y)), y]
    others = np.where(np.arange(p.shape[1]) == y[:, None], -np.inf, p)
    return own - others.max(axis=1)


def test_suspicion_is_what_scikit_learn_and_the_values_of_the_forest_say():
    X, y, *_ = with_flips(load_wine, 0.3)
    judged = score_labels(X, y)
    X = StandardScaler().fit_transform(X).clip(-3, 3).round(6)
    quantiles = np.quantile(X, [0, 0.1, 0.25, 0.5, 0.75, 0.9, 1], axis=0)
    X = X[:, np.lexsort(np.vstack([quantiles, (y - y.mean()) @ X / len(y)]).round(6))]
    order = np.lexsort(np.column_stack([digest_cells(X), digest_labels(y)]).T)
    X, y = X[order], y[order]
    trust, shares, machine = trusted(X, y, leaf=3, C=1)
    differ = ((shares + machine).argmax(axis=1) != y).mean() / (2 * 2 / 3)
    assert 0.2 < differ < 0.3  # both kinds of models have a say
    cautious, *_ = trusted(X, y, leaf=10, C=0.1)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    linear = cross_val_predict(LogisticRegression(C=0.1, max_iter=300), X, y, cv=folds, method="predict_proba")
    share = (differ - 0.2) / 0.1
    expected = -(1 - share) * trust - share * (cautious + in_deviations(margin(linear, y)))
    assert judged.suspicion[order] == pytest.approx(expected, abs=2e-3)


def trusted(X, y, leaf, C):
    """The models, from scikit-learn and the values of the forest."""
    forest = RandomForestClassifier(100, min_samples_leaf=leaf, oob_score=True, random_state=0)
    values = ls.value(X, y, model=ls.models.Fixed(forest), cv="oob").values
    folds, others = (list(StratifiedKFold(5, shuffle=True, random_state=s).split(X, y)) for s in (0, 1))
    machine = SVC(C=C, gamma=1 / 13, decision_function_shape="ovo")
    decisions = cross_val_predict(machine, X, y, cv=folds, method="decision_function")
    decisions = StandardScaler().fit_transform(decisions)
    machine = cross_val_predict(LogisticRegression(C=0.1), decisions, y, cv=others, method="predict_proba")
    shares = forest.fit(X, y).oob_decision_function_
    trust = in_deviations(values) + in_deviations(margin(shares, y)) + 2 * in_deviations(margin(machine, y))
    return trust, shares, machine


def in_deviations(a):
    return (a - a.mean()) / a.std()


def test_probabilities_follow_suspicion_and_add_up_to_the_number(wine):
    *_, judged = wine
    order = np.argsort(judged.suspicion)
    assert (np.diff(judged.p_wrong[order]) >= 0).all()
    assert judged.p_wrong.sum() == pytest.approx(judged.n_wrong[0])
    assert judged.n_wrong[1] < judged.n_wrong[0] < judged.n_wrong[2]


def test_wrong_labels_are_found_with_the_right_ones(wine):
    _, _, wrong, true, judged = wine
    listed = judged.p_wrong > 0.5
    assert wrong[listed].mean() > 0.9
    assert listed[wrong].mean() > 0.6
    assert (judged.suggested[wrong] == true[wrong]).mean() > 0.9


@pytest.mark.parametrize(("load", "n"), [(load_breast_cancer, None), (load_digits, 600)])
@pytest.mark.parametrize("rate", [0.1, 0.3])
@pytest.mark.slow
def test_the_number_of_wrong_labels(load, n, rate):
    X, y, wrong, _ = with_flips(load, rate, n=n)
    about, low, high = score_labels(X, y).n_wrong
    assert low * 0.9 <= wrong.sum() <= high * 1.1
    assert low <= about <= high


def test_right_labels_are_left_alone():
    X, y = load_breast_cancer(return_X_y=True)
    judged = score_labels(X, y)
    assert (judged.p_wrong > 0.5).sum() <= 1
    assert judged.n_wrong[1] < 1


def test_sparse_tables_give_the_same(wine, monkeypatch):
    X, y, *_, judged = wine
    assert (score_labels(sparse.csr_matrix(X), y).suspicion == judged.suspicion).all()
    monkeypatch.setattr(label_noise_models, "MAX_CELLS", 100)
    thin = score_labels(sparse.csr_matrix(X), y).suspicion
    assert np.corrcoef(thin, judged.suspicion)[0, 1] > 0.95


def test_the_order_of_rows_and_columns_does_not_matter(wine):
    X, y, *_, judged = wine
    order = np.random.default_rng(0).permutation(len(y))
    shuffled = score_labels(np.asfortranarray(X[order][:, ::-1]), y[order])
    assert (shuffled.suspicion == judged.suspicion[order]).all()
    assert (shuffled.p_wrong == judged.p_wrong[order]).all()
    assert (shuffled.suggested == judged.suggested[order]).all()


def test_same_seed_same_judgement(wine):
    X, y, *_, judged = wine
    again, other = score_labels(X, y), score_labels(X, y, seed=7)
    assert (again.suspicion == judged.suspicion).all()
    assert (again.p_wrong == judged.p_wrong).all()
    assert (other.suspicion != judged.suspicion).any()


def test_copies_are_judged_alike(wine):
    X, y, *_ = wine
    judged = score_labels(np.vstack([X, X[:20]]), np.r_[y, y[:20]])
    assert (judged.suspicion[:20] == judged.suspicion[178:]).all()
    assert (judged.p_wrong[:20] == judged.p_wrong[178:]).all()


def test_rare_categories_and_outliers_do_not_outweigh_the_rest():
    X, y, *_ = with_flips(load_wine, 0.0)
    X[5, 2], rare = 1e6, (np.arange(len(y)) == 9) * 8.0
    alike = label_noise_models._alike(np.column_stack([X, rare]))
    assert np.abs(alike).max() == 3
    assert sorted(set(alike[:, -1])) == [0, 1]
    assert np.abs(alike[:, 0].mean()) < 0.02


def test_rare_classes_are_not_judged():
    X, y, _, _ = with_flips(load_wine, 0.0)
    y[[3, 50]] = 7
    judged = score_labels(X, y)
    assert judged.suspicion[[3, 50]].tolist() == [0, 0]
    assert (judged.suggested[[3, 50]] == -1).all()
    assert judged.p_wrong[[3, 50]] == pytest.approx(judged.n_wrong[0] / len(y))
    assert (judged.suggested[np.arange(len(y)) % 53 != 50] != 7).all()


def test_with_too_little_there_are_no_scores():
    X, y = load_wine(return_X_y=True)
    assert score_labels(X[:19], np.arange(19) % 2) is None
    assert score_labels(X, np.zeros(len(y), dtype=int)) is None
    assert score_labels(X, np.r_[np.zeros(len(y) - 4, dtype=int), 1, 1, 1, 1]) is None
    assert score_numbers(X[:19], X[:19, 0]) is None


@pytest.mark.parametrize("n_classes", [2, 5])
def test_where_nothing_can_be_learnt_nothing_is_said(n_classes):
    rng = np.random.default_rng(1)
    judged = score_labels(rng.normal(size=(300, 4)), rng.integers(0, n_classes, 300))
    assert np.isnan(judged.p_wrong).all()
    assert np.isnan(judged.n_wrong).all()
    assert np.isfinite(judged.suspicion).all()


def test_many_classes_are_judged_class_by_class():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(25), 8)
    X = np.column_stack([y % 5, y // 5]) * 6 + rng.normal(size=(200, 2))
    y[[4, 90]] = [20, 3]
    judged = score_labels(X, y)
    assert set(np.argsort(-judged.suspicion)[:2]) == {4, 90}
    assert judged.suggested[[4, 90]].tolist() == [0, 11]


def test_of_many_rows_samples_are_enough(monkeypatch):
    X, y, wrong, _ = with_flips(load_breast_cancer, 0.1)
    for name, most in (("MAX_BAG", 200), ("MAX_MACHINE_ROWS", 150), ("MAX_REGRESSION_ROWS", 150)):
        monkeypatch.setattr(label_noise_models, name, most)
    judged = score_labels(X, y)
    worst = np.argsort(-judged.suspicion)[: wrong.sum()]
    assert wrong[worst].mean() > 0.75


def test_cautious_models_find_more_where_many_labels_are_wrong(monkeypatch):
    X, y, wrong, _ = with_flips(load_breast_cancer, 0.4)
    found = {}
    for few in (0.2, 1.0):  # as it is, and without them
        monkeypatch.setattr(label_noise_models, "FEW_DIFFER", few)
        monkeypatch.setattr(label_noise_models, "MANY_DIFFER", 1.5 * few)
        found[few] = wrong[np.argsort(-score_labels(X, y).suspicion)[: wrong.sum()]].mean()
    assert found[0.2] > found[1.0] + 0.02


def test_few_differing_labels_need_no_caution(monkeypatch):
    X, y, *_ = with_flips(load_wine, 0.05)
    monkeypatch.setattr(label_noise_models, "CAUTIOUS", None)
    assert score_labels(X, y) is not None


def test_the_steps_are_told():
    told = []
    X, y, *_ = with_flips(load_wine, 0.1)
    score_labels(X, y, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (40, 40)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


@pytest.fixture(scope="module")
def judged():
    X, true = make_friedman1(400, noise=0.5, random_state=0)
    rng = np.random.default_rng(0)
    wrong = rng.choice(400, 30, replace=False)
    y = true.copy()
    y[wrong] += rng.choice([-1, 1], 30) * rng.uniform(2, 3, 30) * y.std()
    return wrong, true, score_numbers(X, y), X, y


class TestNumbers:
    def test_wrong_numbers_are_found_with_numbers_nearer_to_the_right_ones(self, judged):
        wrong, true, said, _, y = judged
        listed = np.flatnonzero(said.p_wrong > 0.5)
        assert np.isin(listed, wrong).mean() > 0.8
        assert np.isin(wrong, listed).mean() > 0.8
        assert np.median(np.abs(said.suggested - true)[wrong]) < np.median(np.abs(y - true)[wrong]) / 3
        assert 20 < said.n_wrong[0] < 60
        assert said.n_wrong[1] < said.n_wrong[0] < said.n_wrong[2]

    def test_probabilities_follow_the_residuals(self, judged):
        _, _, said, _, _ = judged
        assert (np.diff(said.p_wrong[np.argsort(said.suspicion)]) >= 0).all()

    def test_units_do_not_matter(self, judged):
        _, _, said, X, y = judged
        other = score_numbers(X * 1000, y * 1e6 + 5)
        assert other.p_wrong == pytest.approx(said.p_wrong, abs=0.05)

    def test_numbers_that_are_all_the_same_are_right(self):
        X = np.random.default_rng(0).normal(size=(50, 2))
        assert (score_numbers(X, np.full(50, 3.0)).p_wrong < 0.5).all()

    @pytest.mark.parametrize("kind", ["linear", "exp", "quadratic", "interaction", "heavy tails", "heteroscedastic"])
    def test_right_numbers_are_left_alone(self, kind):
        for seed, (n, width) in enumerate([(200, 1), (200, 3), (400, 5)]):
            X, y = right_numbers(kind, n, width, seed)
            said = score_numbers(X, y)
            assert (said.p_wrong > 0.5).sum() == 0
            assert said.n_wrong[1] == 0
            assert said.n_wrong[0] < 0.02 * n

    def test_one_gross_error_is_enough(self):
        X, y = right_numbers("linear", 200, 3, 0)
        y[17] += 10 * y.std()
        assert np.flatnonzero(score_numbers(X, y).p_wrong > 0.5).tolist() == [17]

    @pytest.mark.parametrize("kind", ["linear", "quadratic"])
    def test_wrong_numbers_among_them_are_found(self, kind):
        X, y = right_numbers(kind, 200, 3, 0)
        rng = np.random.default_rng(1)
        wrong = rng.choice(200, 12, replace=False)
        y[wrong] += rng.choice([-1, 1], 12) * rng.uniform(1.5, 3, 12) * y.std()
        said = score_numbers(X, y)
        listed = np.flatnonzero(said.p_wrong > 0.5)
        assert np.isin(listed, wrong).mean() > 0.8
        assert np.isin(wrong, listed).mean() > 0.8
        assert said.n_wrong[1] <= 12 <= said.n_wrong[2]

    def test_a_wrong_number_among_numbers_that_are_known_exactly(self):
        X = np.repeat(np.arange(5.0), 20)[:, None]
        y = 10 * X[:, 0]
        y[30] = 25
        said = score_numbers(X, y)
        assert np.argmax(said.suspicion) == 30
        assert np.delete(said.p_wrong, 30).max() < 0.5

    def test_the_model_that_predicts_best_counts_most_and_disagreement_excuses(self):
        target = np.array([0.0, 0.0, 4.0, 4.0, 0.0])
        good, poor = np.array([0.1, 0.1, 0.1, 0.1, 0.1]), np.array([1.0, -1.0, 0.1, -9.0, 1.0])
        residual, together = label_noise_models._together(target, np.array([good, poor]))
        assert together == pytest.approx(good, abs=0.01)
        assert residual[2] > 1.3 * residual[3] > 20 * residual[0]

    @pytest.mark.parametrize(("freedom", "is_two"), [(1, False), (3, False), (30, False), (None, True)])
    def test_two_kinds_are_told_from_heavy_tails(self, freedom, is_two):
        rng = np.random.default_rng(0)
        residual = np.abs(rng.normal(size=500) if freedom is None else rng.standard_t(freedom, 500))
        if freedom is None:
            residual[:40] = rng.uniform(5, 20, 40)
        p_wrong, (about, low, high) = two_kinds(residual)
        assert ((p_wrong > 0.5).sum() > 30) == is_two
        assert (low > 0) == is_two
        assert about == pytest.approx(p_wrong.sum(), rel=0.01, abs=0.1)
        assert not is_two or low < 40 < high


def right_numbers(kind, n, width, seed):
    """Rows and numbers with noise, none of which is wrong."""
    rng = np.random.default_rng([seed, n, width])
    X = rng.normal(size=(n, width))
    linear = X @ np.arange(width, 0, -1.0)
    noise = 0.3 * rng.normal(size=n)
    return X, {
        "linear": linear + noise,
        "exp": np.exp(X[:, 0]) + noise,
        "quadratic": X**2 @ np.ones(width) + noise,
        "interaction": linear + 2 * X[:, 0] * X[:, -1] + noise,
        "heavy tails": linear + 0.3 * rng.standard_t(3, n),
        "heteroscedastic": linear + noise * np.exp(X[:, 0]),
    }[kind]
