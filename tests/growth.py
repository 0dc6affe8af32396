"""Whether work grows in proportion to its input, on a machine of any speed."""

import time

_FACTOR = 8
# Linear work takes 8 times as long for 8 times the input, quadratic work 64 times.
_LIMIT = 25
# Seconds below which the start of the work and the resolution of the clock dominate.
_LEAST = 0.02


def assert_linear(make, work, size):
    """Fail if 8 times the input takes far more than 8 times the processor time.

    Args:
        make: Returns the input for a size; it is not measured.
        work: The work on an input.
        size: The smaller size.
    """
    # Noise only adds time: each size is measured again before it counts.
    for _ in range(3):
        small, large = (_seconds(work, make(each)) for each in (size, _FACTOR * size))
        if large < _LIMIT * max(small, _LEAST):
            return
    raise AssertionError(f"{small:.3f} s for {size}, {large:.3f} s for {_FACTOR * size}")


def _seconds(work, given):
    begun = time.process_time()
    work(given)
    return time.process_time() - begun
