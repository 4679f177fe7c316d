import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread():
    """Networks of eight units are done before a second thread has woken up."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
