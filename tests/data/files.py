"""What the tests of readers share."""

from __future__ import annotations

from coterie.data import open_features


def matrix(dataset):
    """All features, as CSC or in F order."""
    return dataset.source.block(0, dataset.shape[1])


def data_or_error(path, **options):
    """Data, or None after an error that names the file; anything else (another error, a crash) fails the test."""
    message = None
    try:
        return open_features(path, **options)
    except (ValueError, OSError) as error:
        message = str(error)
    assert str(path) in message, message
    assert "\n" not in message, message
    return None
