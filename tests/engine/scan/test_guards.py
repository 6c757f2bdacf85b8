"""The guards that decided tests leave open: against their definition."""

import random

import pytest

from cerflow.engine.scan.program.guards import Guards


@pytest.mark.parametrize("seed", range(20))
def test_open_ways(seed):
    draw = random.Random(seed)

    def some(most):
        return frozenset(draw.sample(range(12), draw.randint(0, most)))

    guards = [(some(4), some(2)) for _ in range(draw.randint(0, 30))]
    known = Guards(guards, [1 << k % 8 for k in range(len(guards))], narrows=True, decides=False)
    for decided in [some(12) for _ in range(5)]:
        for satisfied in [decided & some(12) for _ in range(20)]:
            expected = 0
            for (held, not_held), bit in zip(known.guards, known.bits):
                if held.isdisjoint(decided - satisfied) and not_held.isdisjoint(satisfied):
                    expected |= bit
            assert known.left_by(decided, satisfied) == expected
