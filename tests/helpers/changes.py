"""Changes of a scenario, as its form proposes them."""

from simulator.problem.scenario import with_values
from ui.window.main_window import MainWindow


def choose_algorithm(window: MainWindow, name: str) -> None:
    """Propose the same scenario with another algorithm."""
    assert window.session.scenario is not None
    changed = with_values(window.session.scenario, {"attention": {"algorithm": name}})
    window.session.propose(changed, f"algorithm {name}")
