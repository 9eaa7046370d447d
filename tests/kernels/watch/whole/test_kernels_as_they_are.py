"""Every kernel in every variant and build, watched as it is: nothing is told of it."""

from itertools import product
from pathlib import Path

import pytest

from kernels.cuda.specs import KERNELS
from kernels.devices.host.device import HostDevice
from kernels.devices.races import builds_of, launch_all
from tests.kernels.watch.watched import VARIANTS, case, has, needs_watch

pytestmark = needs_watch

WATCHED = [
    (algorithm, variant)
    for algorithm, variant in product(KERNELS, VARIANTS)
    if has(algorithm, variant)
]


@pytest.mark.parametrize(("algorithm", "variant"), WATCHED)
def test_a_kernel_that_is_right_is_told_nothing_of(
    algorithm: str, variant: str, tmp_path: Path
) -> None:
    device = HostDevice(watch=True)
    workload, inputs = case(algorithm, variant, tmp_path)
    for build in builds_of(workload, device):
        launch_all(workload, inputs, device, build)
        assert [str(fault) for fault in device.faults] == [], build
