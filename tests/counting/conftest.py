import pytest


@pytest.fixture(scope="session")
def painter():
    """One for all tests: opening takes a tenth of a second."""
    from irrl.tasks.counting.render import Painter

    with Painter() as painter:
        yield painter
