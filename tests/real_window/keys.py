"""Keys, as X calls them."""

_NAMES = {
    "PgDown": "Next",
    "PgUp": "Prior",
    "Esc": "Escape",
    "Backspace": "BackSpace",
    "+": "plus",
    "-": "minus",
    "Space": "space",
}
"""Of keys, where X calls them otherwise than Qt."""


def x_keys(keys: str) -> str:
    """Return keys as X writes them: "Ctrl+1" as "ctrl+1"."""
    *modifiers, key = keys.replace("++", "+plus").split("+")
    key = _NAMES.get(key, key)
    return "+".join((*(each.lower() for each in modifiers), key.lower() if len(key) == 1 else key))
