"""What several files of these tests ask for."""

import pytest

from simulator.assets import SCENARIOS
from simulator.scenario import Scenario, load_scenario


@pytest.fixture(scope="session")
def sentence() -> Scenario:
    return load_scenario(SCENARIOS / "flash2.toml")
