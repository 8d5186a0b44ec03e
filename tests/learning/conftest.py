import pytest


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Small tensors gain nothing from threads, and two test processes would fight for cores."""
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
