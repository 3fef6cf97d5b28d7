import sys

import pytest


@pytest.fixture(autouse=True)
def pyplot_is_left_alone():
    """No function may open a figure in pyplot, or even load it: that would choose a backend for the whole process."""
    loaded = "matplotlib.pyplot" in sys.modules
    yield
    assert ("matplotlib.pyplot" in sys.modules) == loaded
    if loaded:
        assert sys.modules["matplotlib.pyplot"].get_fignums() == []


@pytest.fixture
def axes():
    """Two panels that a user has made."""
    from matplotlib.figure import Figure

    return Figure().subplots(1, 2)
