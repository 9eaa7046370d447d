"""Sessions on demos."""

from simulator.base.assets import SCENARIOS
from ui.session.session import Session


def make_session(name: str = "causal") -> Session:
    """Return a session that shows the first state of a demo."""
    session = Session("numpy")
    session.open(SCENARIOS / f"{name}.toml")
    session.settle()
    return session
