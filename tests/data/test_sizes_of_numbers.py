"""Numbers of any size: right values and finite errors, or a refusal; nothing becomes infinity, NaN or 0 on the way."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import Ridge

import localshapley as ls

RNG = np.random.default_rng(0)
X, X_TEST = RNG.normal(size=(14, 3)), RNG.normal(size=(6, 3))
Y, Y_TEST = (table @ [1.0, 2.0, -1.0] + 0.3 * RNG.normal(size=len(table)) for table in (X, X_TEST))
HUGE, TINY = 2.0**66, 2.0**-80


def of_amounts(scale, **settings):
    """Values of rows whose amounts, and what is to be predicted, are `scale` times as large."""
    model = ls.models.Estimator(Ridge())
    return ls.value(X, scale * Y, X_TEST, scale * Y_TEST, model=model, support=ls.supports.Nearest(7), **settings)


def check_finite(v, path):
    """Values have errors, and a file gives them back."""
    v.save(path)
    back = ls.load(path)
    for one, other in zip(v.interval(), back.interval(), strict=True):
        assert np.isfinite(one).all()
        np.testing.assert_array_equal(one, other)
    low, high = v.interval()
    assert (low < high).all()
    assert np.isfinite(v.among_worst(3).probability).all()
    assert not any("nan" in note or "inf " in note for note in [*v.notes, repr(v), v.summary()])


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("scale", [HUGE, TINY], ids=["huge", "tiny"])
class TestScale:
    def test_of_exact_values(self, scale, tmp_path):
        """Nothing depends on the unit of `y` but the unit of the values."""
        v, plain = of_amounts(scale, method="exact"), of_amounts(1.0, method="exact")
        np.testing.assert_allclose(v.values, scale**2 * plain.values, rtol=1e-12)
        np.testing.assert_allclose(v.stderr_tests, scale**2 * plain.stderr_tests, rtol=1e-6)
        np.testing.assert_allclose(v.interval(), scale**2 * np.array(plain.interval()), rtol=1e-6)
        check_finite(v, tmp_path / "v.parquet")

    @pytest.mark.parametrize("method", ["sample", "local-mc", "complementary"])
    def test_of_sampled_values(self, method, scale, tmp_path):
        v = of_amounts(scale, method=method, budget=150, per_test=method == "sample")
        assert (v.stderr > 0).any()
        assert v.history is None or np.isfinite(v.history.relative_error).all()
        check_finite(v, tmp_path / "v.parquet")

    def test_of_games_with_several_test_rows(self, scale, tmp_path):
        """Their scores are kept by bundle of test rows, too."""
        everyone = {"model": ls.models.Estimator(Ridge()), "support": ls.supports.Everything()}
        check_finite(
            ls.value(X, scale * Y, X_TEST, scale * Y_TEST, **everyone, method="sample", budget=200),
            tmp_path / "v.parquet",
        )


class Diverging(RegressorMixin, BaseEstimator):
    """A mean that runs away where it has fewer than some rows."""

    def __init__(self, says=1e200, least=4):
        self.says = says
        self.least = least

    def fit(self, X, y):
        self.mean_ = self.says if len(y) < self.least else y.mean()
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


@pytest.mark.filterwarnings("error::RuntimeWarning")
class TestTooLarge:
    def test_predictions_without_a_score_are_no_answer(self):
        """As those that are infinite; a note says so, and what helps."""
        found, expected = (
            ls.value(X, Y, X_TEST, Y_TEST, model=Diverging(says), support=ls.supports.Nearest(6), method="exact")
            for says in (1e200, np.inf)
        )
        np.testing.assert_array_equal(found.values, expected.values)
        assert np.isfinite(found.interval()).all()
        (note,) = (note for note in found.notes if "too large to be scored" in note)
        assert note in expected.notes
        assert "scale the columns of X" in note

    def test_a_model_without_any_answer_is_warned_of(self):
        data = X, Y, X_TEST, Y_TEST
        with pytest.warns(ls.LocalShapleyWarning, match="values say nothing, as the model gave no prediction"):
            v = ls.value(*data, model=Diverging(least=100), support=ls.supports.Nearest(6), method="exact")
        assert any("say nothing" in note for note in v.notes)

    def test_scores_of_a_game_are_refused(self):
        message = r"score of 1e\+100 to a coalition of 0 players on test row 0.*1e\+62"
        with pytest.raises(ls.TrainingError, match=message):
            ls.shapley([[0, 1, 2]], lambda coalition, tests: np.full(len(tests), 1e100))

    def test_amounts_are_no_classes(self):
        """Floats of this size are whole numbers."""
        assert "Regressor" in ls.value(X, HUGE * Y, X_TEST, HUGE * Y_TEST, model="knn").model

    @pytest.mark.parametrize("scale", [1e40, 1e-40])
    def test_amounts_are_refused(self, scale):
        with pytest.raises(ls.InvalidArgumentError, match=r"y holds .* 1e[+-]30 .* by a large number"):
            of_amounts(scale)
