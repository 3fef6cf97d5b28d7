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
from coterie.persistence.slim import slimmed

FORMAT = "coterie model"
VERSION = 1


def save(model: BaseEstimator, path: str | os.PathLike[str], *, content: str = "auto") -> None:
    """Save an estimator, fitted or not, to a file that runs no code when it is loaded.

    Parameters
    ----------
    model : estimator of Coterie
        With its parameters and fitted attributes. Parameters that hold a function or an object of another package cannot be
        saved, and the error names them; scikit-learn's splitters, unfitted estimators of scikit-learn and ``RandomState`` can.
        Callbacks and metadata requests are left out.
    path : path
        The file. One that is there already is replaced in one step once the new one is complete.
    content : {"auto", "all", "prediction"}, default="auto"
        What goes into the file: ``"all"`` of the model; all but the names of features that it neither reads nor has in its
        groups, where the names are more than 1 MB (``"auto"``); or without those names in any case, and without the scores,
        votes and dual variables, which have a number for each feature or sample (``"prediction"``). All predict by name.

    See Also
    --------
    load : The way back.

    Notes
    -----
    The file is a ZIP archive that ``numpy.load`` opens, too: plain arrays, and the text ``model.json`` with a format version
    and checksums. The page ``docs/reference/models.md`` says what is in it, and why it is not a pickle.

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
            f"save() takes an estimator of Coterie, not {kind.__module__}.{kind.__qualname__}. For a pipeline or another "
            "package's estimator use skops.io.dump."
        )
    check("content", content, OneOf("auto", "all", "prediction"))
    encoder = Encoder()
    encoded = encoder.encode_estimator(slimmed(model, content))
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
        The file.
    max_features : int, optional
        Largest number of features accepted. By default as many as the file has values, and at least 2**25: arrays with one
        value per feature (``coef_``, ``get_support()``) must not outgrow memory because of one wrong number. Only models of
        more features that were saved with ``content="prediction"`` need it.

    Returns
    -------
    model : estimator
        With the same parameters, attributes and predictions, bit for bit.

    Raises
    ------
    ValueError
        If the file is damaged, is no model, or has another format version.

    See Also
    --------
    save : With an example.

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
        raise IsADirectoryError(f"{file} is a folder; the model of a result folder is its file model.coterie.")
    if not file.exists():
        raise FileNotFoundError(f"There is no file {file}.")
    content, arrays = read_archive(file)
    if content.get("format") != FORMAT:
        raise DamagedModelError(f"{file} is not a Coterie model.")
    version = content.get("version")
    if type(version) is not int or version != VERSION:
        raise ValueError(f"{file} has model format version {version!r}; this Coterie reads version {VERSION}. Update Coterie.")
    try:
        model = Decoder(arrays, max_features).estimator(content["model"])
        if type(model).__module__.split(".")[0] != "coterie":
            raise ValueError(f"it holds a {type(model).__name__} of another package")
        return model
    # Whatever a text that nobody has checked makes constructors stumble over, the user needs to know one thing.
    except Exception as error:
        writer = content.get("written_by", {}).get("coterie", "?") if isinstance(content.get("written_by"), dict) else "?"
        reason = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise ValueError(
            f"{file} (written by Coterie {writer}) cannot be read by Coterie {__version__}: {reason.rstrip('.')}."
        ) from error
