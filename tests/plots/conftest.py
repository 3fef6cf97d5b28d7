import sys

import pytest


@pytest.fixture(autouse=True)
def pyplot_is_not_used():
    """No function may open a pyplot figure or import pyplot, which would select a backend for the process."""
    loaded = "matplotlib.pyplot" in sys.modules
    yield
    assert ("matplotlib.pyplot" in sys.modules) == loaded
    if loaded:
        assert sys.modules["matplotlib.pyplot"].get_fignums() == []


@pytest.fixture
def axes():
    """Return two panels made by a user."""
    from matplotlib.figure import Figure

    return Figure().subplots(1, 2)
