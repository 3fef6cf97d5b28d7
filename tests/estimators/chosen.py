"""The estimator without a choice that has the settings which a validated one has chosen."""

import coterie


def chosen_estimator(model):
    kind = getattr(coterie, type(model).__name__.removesuffix("CV"))
    names = kind._get_param_names()
    own = {name: value for name, value in model.get_params(deep=False).items() if name in names}
    chosen = {name: getattr(model, f"{name}_") for name in ("C", "threshold", "standardize", "predict_with")}
    return kind(**{**own, **chosen, "cv": model.embedded_cv, "n_features_to_select": model.n_features_})
