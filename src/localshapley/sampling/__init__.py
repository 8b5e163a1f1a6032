"""The sampled estimator: rounds of draws, surrogates that are subtracted from games, cross-fitting, errors."""
