"""The actions of the window, one row each: menu, keys, words and what they call."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ActionSpec:
    """One action.

    Attributes
    ----------
    name : str
        Object name; also names the method of the window that it calls.
    text : str
        Words in the menu.
    menu : str
        Menu that holds it.
    keys : tuple of str
        Shortcuts, the first one shown.
    icon : str
        File in ``assets/icons``, without its ending; empty for none.
    checkable : bool
        Whether it is on or off; then the method takes a bool.
    separated : bool
        Whether a line stands before it in the menu.
    """

    name: str
    text: str
    menu: str
    keys: tuple[str, ...] = ()
    icon: str = ""
    checkable: bool = False
    separated: bool = False


MENUS = ("File", "Edit", "Run", "View", "Help")

ACTIONS = (
    ActionSpec("open_scenario", "Open…", "File", ("Ctrl+O",), "open"),
    ActionSpec("save_scenario", "Save", "File", ("Ctrl+S",), "save"),
    ActionSpec("save_scenario_as", "Save as…", "File", ("Ctrl+Shift+S",)),
    ActionSpec("export_picture", "Export picture…", "File", ("Ctrl+E",), "export", separated=True),
    ActionSpec("quit", "Quit", "File", ("Ctrl+Q",), separated=True),
    ActionSpec("undo", "Undo", "Edit", ("Ctrl+Z",), "undo"),
    ActionSpec("redo", "Redo", "Edit", ("Ctrl+Y", "Ctrl+Shift+Z"), "redo"),
    ActionSpec("first", "First", "Run", ("Home",), "first"),
    ActionSpec("back", "Step back", "Run", ("Left",), "back"),
    ActionSpec("forward", "Step", "Run", ("Right",), "forward"),
    ActionSpec("last", "Last", "Run", ("End",), "last"),
    ActionSpec("play", "Play", "Run", ("Space",), "play", checkable=True, separated=True),
    ActionSpec("slower", "Slower", "Run", ("-",)),
    ActionSpec("faster", "Faster", "Run", ("+", "=")),
    ActionSpec("row_block_back", "Row block back", "Run", ("Shift+Left",), separated=True),
    ActionSpec("row_block_forward", "Row block on", "Run", ("Shift+Right",), "row-block"),
    ActionSpec("head_back", "Head back", "Run", ("Ctrl+Left",)),
    ActionSpec("head_forward", "Head on", "Run", ("Ctrl+Right",), "head"),
    ActionSpec("zoom_in", "Zoom in", "View", ("Ctrl++", "Ctrl+="), "zoom-in", separated=True),
    ActionSpec("zoom_out", "Zoom out", "View", ("Ctrl+-",), "zoom-out"),
    ActionSpec("zoom_fit", "Fit", "View", ("Ctrl+0",), "zoom-fit"),
    ActionSpec("next_theme", "Next theme", "View", ("T",), "theme", separated=True),
    ActionSpec("larger_text", "Larger text", "View", ("Ctrl+Shift++", "Ctrl+Shift+="), "text-size"),
    ActionSpec("smaller_text", "Smaller text", "View", ("Ctrl+Shift+-", "Ctrl+Shift+_")),
    ActionSpec("set_motion", "Motion", "View", ("M",), checkable=True),
    ActionSpec("full_screen", "Full screen", "View", ("F11",), "fullscreen", checkable=True,
               separated=True),
    ActionSpec("present", "Present", "View", ("F5",), "present", checkable=True),
    ActionSpec("blank", "Blank", "View", ("B",), checkable=True),
    ActionSpec("reset_layout", "Reset layout", "View"),
    ActionSpec("show_keys", "Keys", "Help", ("?",), "help"),
    ActionSpec("about", "About Tilescope", "Help"),
)  # fmt: skip
