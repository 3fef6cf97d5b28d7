"""Save and load models."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import sklearn
from sklearn.base import BaseEstimator

from coterie import __version__
from coterie._parameters import Integer, OneOf, check
from coterie.files import new_file
from coterie.persistence.archive import DamagedModelError, read_archive, write_archive
from coterie.persistence.encoding import Decoder, Encoder
from coterie.persistence.slim import slim_copy

FORMAT = "coterie model"
VERSION = 1


def save(model: BaseEstimator, path: str | os.PathLike[str], *, content: str = "auto") -> None:
    """Save an estimator, fitted or not, to a file that runs no code when it is loaded.

    Parameters
    ----------
    model : estimator of Coterie
        Estimator, which is saved with its parameters and fitted attributes. Splitters, unfitted estimators of scikit-learn and
        ``RandomState`` are supported as parameters. Functions and objects of other packages are not, and the error names the
        parameter. Callbacks and metadata requests are not saved.
    path : path
        Path of the file. An existing file is replaced atomically when the new one is complete.
    content : {"auto", "all", "prediction"}, default="auto"
        Content of the file. All of them predict by name.

        - ``"all"``: the whole model.
        - ``"auto"``: like ``"all"``, but if the feature names exceed 1 MB, only the names of features that the model reads or
          that are in its groups.
        - ``"prediction"``: only these names in any case, and no scores, votes and dual variables, which have one number per
          feature or sample.

    See Also
    --------
    load : Load the file.

    Notes
    -----
    The file is a ZIP archive that ``numpy.load`` can open: plain arrays, and the text ``model.json`` with a format version
    and checksums. The page ``docs/reference/models.md`` describes its content, and why it is not a pickle.

    Examples
    --------
    >>> import tempfile, os
    >>> import coterie
    >>> from coterie.datasets import make_support_affiliated
    >>> data = make_support_affiliated(400, 60, n_support=3, n_true=7, random_state=0)
    >>> model = coterie.GroupDiscoveryClassifier(3, n_features_per_round=1).fit(data.X, data.y)
    >>> path = os.path.join(tempfile.mkdtemp(), "model.coterie")
    >>> coterie.save(model, path)
    >>> again = coterie.load(path)
    >>> again.groups_ == model.groups_
    True
    >>> bool((again.decision_function(data.X) == model.decision_function(data.X)).all())
    True
    """
    if not isinstance(model, BaseEstimator) or type(model).__module__.split(".")[0] != "coterie":
        kind = type(model)
        raise TypeError(
            f"save() requires an estimator of Coterie, but got {kind.__module__}.{kind.__qualname__}. For a pipeline or an "
            "estimator of another package, use skops.io.dump."
        )
    check("content", content, OneOf("auto", "all", "prediction"))
    encoder = Encoder()
    encoded = encoder.encode_estimator(slim_copy(model, content))
    text = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": {"coterie": __version__, "scikit-learn": sklearn.__version__},
        "model": encoded,
    }
    with new_file(path) as partial:
        write_archive(partial, text, encoder.pooled())


def load(path: str | os.PathLike[str], *, max_features: int | None = None) -> Any:
    """Load an estimator that :func:`save` wrote. No code from the file is run.

    Parameters
    ----------
    path : path
        Path of the file.
    max_features : int, optional
        Largest accepted number of features. By default the number of values in the file, and at least 2**25: one wrong number
        in a file must not allocate huge arrays with one value per feature (``coef_``, ``get_support()``). Only required for
        models with more features that were saved with ``content="prediction"``.

    Returns
    -------
    model : estimator
        Estimator with bit-identical parameters, attributes and predictions.

    Raises
    ------
    ValueError
        If the file is damaged, is not a model, or has another format version.

    See Also
    --------
    save : Save an estimator; with an example.

    Examples
    --------
    >>> import coterie
    >>> coterie.load("no-such-model.coterie")
    Traceback (most recent call last):
    FileNotFoundError: ...
    """
    check("max_features", max_features, Integer(0) | OneOf(None))
    file = Path(path)
    if file.is_dir():
        raise IsADirectoryError(f"{file} is a folder. The model of a result folder is its file model.coterie.")
    if not file.exists():
        raise FileNotFoundError(f"Model file {file} not found. Check the path.")
    content, arrays = read_archive(file)
    if content.get("format") != FORMAT:
        raise DamagedModelError(f"{file} is not a Coterie model.")
    version = content.get("version")
    if type(version) is not int or version != VERSION:
        raise ValueError(
            f"{file} has model format version {version!r}, but this version of Coterie reads version {VERSION}. "
            "Update Coterie."
        )
    try:
        model = Decoder(arrays, max_features).estimator(content["model"])
        if type(model).__module__.split(".")[0] != "coterie":
            raise ValueError(f"it contains a {type(model).__name__} of another package")
        return model
    # Unchecked content can cause errors of any type in constructors. All of them mean that the file cannot be read.
    except Exception as error:
        writer = content.get("written_by", {}).get("coterie", "?") if isinstance(content.get("written_by"), dict) else "?"
        reason = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise ValueError(
            f"{file} (written by Coterie {writer}) cannot be read by Coterie {__version__}: {reason.rstrip('.')}."
        ) from error
