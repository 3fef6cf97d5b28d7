"""From opened data to a discovery with all that is known of it: validated, with held-out scores and confidences, or fast."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coterie.cli.data import TASKS, scales_apart
from coterie.cli.output import Output
from coterie.cli.parameters import read_parameters
from coterie.interruption import StopRequest, stopping_gracefully
from coterie.methods import DISCOVERY, DISCOVERY_CV, load

if TYPE_CHECKING:
    from coterie.data import Dataset
    from coterie.report import DiscoveryResult, HeldOut

_PANEL = "Honesty"
_FEW_FEATURES = 100
# Values of C to choose from; more take longer and seldom choose better.
_N_PENALTIES = 5
# Folds where nobody has said how many.
_N_FOLDS = 5
# Samples and values up to which models on whole groups are tried as well, each of which is fitted anew.
_MOST_SAMPLES = 2000
_MOST_VALUES = 10**8
# Samples of a class below which it cannot be held out twice, and below which it is tiny.
_FEWEST, _TINY = 3, 10


@dataclass(frozen=True)
class Care:
    """How much is done to tell what holds from what does not.

    Attributes
    ----------
    fast : bool
        One fit, judged by its training data alone.
    n_pairs, n_permutations : int
        As for :func:`coterie.group_confidence`; no pairs for no confidences.
    """

    fast: Annotated[
        bool,
        typer.Option("--fast", help="One fit with given settings: no validation, no confidences.", rich_help_panel=_PANEL),
    ] = False
    n_pairs: Annotated[
        int,
        typer.Option(
            "--n-pairs", help="Pairs of half-samples for the confidences; 0 for none.", min=0, rich_help_panel=_PANEL
        ),
    ] = 25
    n_permutations: Annotated[
        int,
        typer.Option(
            "--n-permutations",
            help="How often all is repeated with shuffled labels, to tell what confidence chance reaches.",
            min=0,
            rich_help_panel=_PANEL,
        ),
    ] = 5


def fit(
    dataset: Dataset,
    task: str,
    parameters: dict[str, Any],
    care: Care,
    voice: Output,
    *,
    label: str | None = None,
    image: dict[str, Any] | None = None,
    command: str | None = None,
) -> tuple[DiscoveryResult, int]:
    """The fitted model with what is to be told of it, and the exit code (of a signal that ended it early)."""
    from coterie.report import DiscoveryResult, describe
    from coterie.report.making import target_of

    began = time.perf_counter()
    parameters = _with_labels(parameters, dataset)
    plain = care.fast or parameters.get("n_features_to_select") == "auto" or not _can_validate(dataset, task, parameters)
    if task == "one-class" and not plain:
        voice.note("Samples labelled 1 are learnt from, those labelled -1 are outliers to judge by.")
    with voice.collecting_warnings(), stopping_gracefully(voice.note) as request:
        _warn_of_data(dataset, task, parameters)
        model = (_plain if plain else _validated)(dataset, task, parameters)
        model.set_params(verbose=voice.verbose)
        if getattr(model, "random_state", 0) is None:  # the same command gives the same result
            model.set_params(random_state=0)
        if task == "one-class" and dataset.covariates is not None:
            raise ValueError("Covariates have no meaning for --task one-class; leave --covar out.")
        model.fit(dataset)
        more = {} if dataset.covariates is None else {"covariates": dataset.covariates}
        score = None if task == "one-class" else float(model.score(dataset.source, dataset.y, **more))
        held_out = _held_out(model, dataset, score)
        if not care.fast and care.n_pairs:
            _add_confidence(model, dataset, care, request, voice)
    seconds = time.perf_counter() - began
    with voice.collecting_warnings():
        details = describe(model, dataset.source, dataset.y, **(image or {}))
    result = DiscoveryResult(
        model, _about(dataset), task, seconds, score, tuple(voice.warnings), request.signal is not None,
        dataset.feature_info, held_out, target_of(dataset.y, task, label), details, command,
    )  # fmt: skip
    return result, 0 if request.signal is None else 128 + request.signal


def check_parameters(task: str, parameters: dict[str, Any], care: Care) -> None:
    """Raise what ``fit`` would, without data; whichever task it will be, the parameters mean the same."""
    from coterie._parameters import check_parameters as check_estimator

    if task not in TASKS:
        raise ValueError(f"--task {task!r} must be one of {', '.join(TASKS)}.")
    supposed = "classification" if task == "auto" else task
    number = parameters.get("n_features_to_select")
    plain = care.fast or number == "auto" or (supposed == "one-class" and not _asks_to_validate(parameters))
    if isinstance(number, str) and number not in ("auto", "cv"):
        raise ValueError(f"--n-features-to-select {number!r} must be a number, a fraction, auto or cv.")
    if number == "cv" and plain:
        raise ValueError("--n-features-to-select cv does not go with --fast; give a number or auto.")
    if not plain and number not in (None, "cv"):
        check_estimator(_estimator(DISCOVERY[supposed], {"n_features_to_select": number}, supposed, care.fast))
    chosen = parameters if plain else _searched(parameters, 1000)
    check_estimator(_estimator((DISCOVERY if plain else DISCOVERY_CV)[supposed], chosen, supposed, care.fast))


def _can_validate(dataset: Dataset, task: str, parameters: dict[str, Any]) -> bool:
    """Whether there are samples to judge by; of one class, both kinds for every fold."""
    if task != "one-class":
        return True
    import numpy as np

    if dataset.y is None or dataset.y.dtype.kind not in "if":
        return False
    labels, counts = np.unique(dataset.y, return_counts=True)
    folds = parameters.get("cv", _N_FOLDS)
    return labels.tolist() == [-1, 1] and min(counts) >= (folds if isinstance(folds, int) else _FEWEST)


def _asks_to_validate(parameters: dict[str, Any]) -> bool:
    """Whether something is said that the plain estimator of one class does not know."""
    known = {parameter.name for parameter in read_parameters(DISCOVERY["one-class"])}
    return parameters.get("n_features_to_select") == "cv" or bool(set(parameters) - known)


def _plain(dataset: Dataset, task: str, parameters: dict[str, Any]) -> Any:
    """The estimator with given settings."""
    if parameters.get("n_features_to_select") == "cv":
        raise ValueError("--n-features-to-select cv needs labels 1 and -1, of each as many as folds, for --task one-class.")
    model = _estimator(DISCOVERY[task], parameters, task, True)
    if "n_features_to_select" not in parameters and dataset.source.shape[1] <= _FEW_FEATURES:
        model.set_params(n_features_to_select="auto")  # the default asks for more than there are
    return model


def _validated(dataset: Dataset, task: str, parameters: dict[str, Any]) -> Any:
    """The estimator that chooses what the user has not said."""
    import numpy as np

    from coterie.data.totals import mostly_zero

    n_samples, n_features = dataset.source.shape
    # The fewest features that do as well, within the error: where nearly all are chosen no group can stand out.
    chosen = {"rule": "one_se", "Cs": _N_PENALTIES, **_searched(parameters, n_features)}
    few = n_samples <= _MOST_SAMPLES and n_samples * n_features <= _MOST_VALUES
    if "predict_with" not in chosen and few and not mostly_zero(dataset.source):
        chosen["predict_with"] = ["support", "groups"]
    model = _estimator(DISCOVERY_CV[task], chosen, task, False)
    assert dataset.y is not None
    smallest = n_samples if task == "regression" else min(np.unique(dataset.y, return_counts=True)[1])
    folds = model.cv if isinstance(model.cv, int) else _FEWEST
    if smallest >= _FEWEST and folds >= _FEWEST:
        model.set_params(nested=True)
    return model


def _searched(parameters: dict[str, Any], n_features: int) -> dict[str, Any]:
    """Parameters of the estimator with a choice: what the user has said is the only candidate."""
    chosen = dict(parameters)
    number = chosen.pop("n_features_to_select", "cv")
    if number != "cv":
        from coterie.selection import features_of_share

        size = number if isinstance(number, int) else features_of_share(number, n_features)
        chosen |= {"min_features_to_select": size, "max_features_to_select": size}
    if "C" in chosen:
        chosen["Cs"] = [chosen.pop("C")]
    return chosen


def _estimator(place: str, parameters: dict[str, Any], task: str, fast: bool) -> Any:
    known = {parameter.name for parameter in read_parameters(place)}
    for foreign in sorted(set(parameters) - known):
        option = f"--{foreign.replace('_', '-')}"
        why = f"with --fast or auto{', or without labels 1 and -1' if task == 'one-class' else ''}"
        if fast and any(foreign == p.name for p in read_parameters(DISCOVERY_CV[task])):
            raise ValueError(f"{option} belongs to the validation, which there is none of {why}; leave it out.")
        raise ValueError(f"{option} has no meaning for --task {task}; leave it out.")
    return load(place)(**parameters)


def _held_out(model: Any, dataset: Dataset, training: float | None) -> HeldOut | None:
    """The scores of the whole procedure, if they were measured."""
    import warnings

    from coterie.report.validation import held_out_of

    alone = "covariates alone" if hasattr(model, "covariate_names_") else "constant"
    result = held_out_of(model, dataset.source, dataset.y, training, alone)
    if result is not None and not result.predicts:
        words = "a constant prediction" if alone == "constant" else "one of the covariates alone"
        warnings.warn(f"On held-out samples the model is no better than {words}.", UserWarning, stacklevel=2)
    return result


def _add_confidence(model: Any, dataset: Dataset, care: Care, request: StopRequest, voice: Output) -> None:
    """Let the groups have their confidence, unless the user has had enough."""
    from coterie import group_confidence

    if request.signal is not None:
        voice.note("The confidences were left out.")
        return
    try:
        found = group_confidence(
            model,
            dataset,
            n_pairs=care.n_pairs,
            n_permutations=care.n_permutations,
            random_state=model.random_state,
            n_jobs=model.n_jobs,
            verbose=voice.verbose,
        )
        found.attach_to(model)
    except KeyboardInterrupt:
        if request.signal is None:
            raise
        voice.note("The confidences were left out.")


def _warn_of_data(dataset: Dataset, task: str, parameters: dict[str, Any]) -> None:
    """Say what makes a result doubtful before anything is computed."""
    import warnings

    import numpy as np

    if task == "classification" and dataset.y is not None:
        labels, counts = np.unique(dataset.y, return_counts=True)
        tiny = [f"{label} ({count})" for label, count in zip(labels.tolist(), counts.tolist(), strict=True) if count < _TINY]
        if tiny:
            shown = ", ".join(tiny[:5]) + (", …" if len(tiny) > 5 else "")
            warnings.warn(f"Classes with few samples: {shown}. Little can be said about them.", UserWarning, stacklevel=2)
    if parameters.get("standardize", True) is False and scales_apart(dataset):
        warnings.warn(
            "The features have very different scales, and large ones are preferred; --standardize gives all the same.",
            UserWarning,
            stacklevel=2,
        )


def _about(dataset: Dataset) -> dict[str, Any]:
    from coterie.report.environment import fingerprint

    n_samples, n_features = dataset.source.shape
    return {
        "path": str(dataset.path),
        "format": dataset.format,
        "samples": n_samples,
        "features": n_features,
        "fingerprint": fingerprint(dataset.source, dataset.y),
        **({"notes": dataset.notes} if dataset.notes else {}),
        **({"covariates": list(dataset.covariates.names)} if dataset.covariates is not None else {}),
    }


def _with_labels(parameters: dict[str, Any], dataset: Dataset) -> dict[str, Any]:
    """Weights of classes under the labels themselves: JSON has text for keys, labels may be numbers."""
    weights = parameters.get("class_weight")
    if not isinstance(weights, dict) or dataset.y is None:
        return parameters
    labels = {str(label): label for label in dict.fromkeys(dataset.y.tolist())}
    return {**parameters, "class_weight": {labels.get(key, key): weight for key, weight in weights.items()}}
