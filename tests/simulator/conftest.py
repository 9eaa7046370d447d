"""What several files of these tests ask for."""

import pytest

from simulator.base.assets import SCENARIOS
from simulator.problem.scenario import Scenario, load_scenario


@pytest.fixture(scope="session")
def sentence() -> Scenario:
    return load_scenario(SCENARIOS / "flash2.toml")
