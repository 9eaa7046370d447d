"""Changes of a scenario, as its form proposes them."""

from typing import Any

from simulator.problem.scenario import with_values
from ui.session.session import Session
from ui.window.main_window import MainWindow


def change(session: Session, tables: dict[str, dict[str, Any]], words: str) -> None:
    """Change values of the scenario on show, and wait for the run."""
    session.propose(with_values(session.scenario, tables), words)
    session.settle()


def choose_algorithm(window: MainWindow, name: str) -> None:
    """Propose the same scenario with another algorithm."""
    changed = with_values(window.session.scenario, {"attention": {"algorithm": name}})
    window.session.propose(changed, f"algorithm {name}")
