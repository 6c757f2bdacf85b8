"""After warming up no kernel is left to compile."""

from numba.core.dispatcher import Dispatcher

from cerflow.engine import counting, memory, recognizer, unfolding
from cerflow.engine.warmup import warm_up


def test_every_kernel_that_the_engine_calls_is_compiled():
    warm_up()
    rooms = (counting, memory, recognizer, unfolding)
    kernels = {k for room in rooms for k in vars(room).values() if isinstance(k, Dispatcher)}
    assert len(kernels) >= 5
    assert [k.__name__ for k in kernels if not k.signatures] == []
