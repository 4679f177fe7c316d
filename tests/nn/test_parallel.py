import threading

import pytest
import torch

from irrl.nn.parallel import parts_in_parallel

CPU = torch.device("cpu")


@pytest.fixture(params=[1, 2, 4])
def each(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    with parts_in_parallel(CPU, 4) as each:
        yield each
    assert torch.get_num_threads() == request.param
    torch.set_num_threads(before)


def test_results_come_in_order_whoever_works(each):
    assert list(each(lambda n, m: n * m, range(50), range(50))) == [n * n for n in range(50)]


@pytest.mark.parametrize("each", [2], indirect=True)
def test_all_threads_work_at_once_and_this_one_is_among_them(each):
    together = threading.Barrier(2, timeout=60)

    def work(_):
        together.wait()
        return threading.get_ident(), torch.get_num_threads()

    for _ in range(200):
        threads, counts = zip(*each(work, range(2)), strict=True)
        assert threading.get_ident() in threads and len(set(threads)) == 2
        assert counts == (1, 1)


def test_an_error_comes_through_and_the_next_work_is_done(each):
    def work(n):
        if n == 3:
            raise ValueError("three")
        return n

    for _ in range(20):
        with pytest.raises(ValueError, match="three"):
            list(each(work, range(10)))
        assert list(each(work, range(3))) == [0, 1, 2]
