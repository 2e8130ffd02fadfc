# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(2026)


@pytest.fixture(params=[np.float32, np.float64], ids=["f32", "f64"])
def dtype(request):
    return request.param


def unit(x):
    """What rounding may leave, in units of the roundoff of x's type."""
    return 30 * (min(x.shape[-2:]) + 10) * np.finfo(x.dtype).eps
