"""The cache that forgets: what is held, in which order it goes, and how many bytes it is."""

from hypothesis import given
from hypothesis import strategies as st

from simulator.base.cache import BoundedCache


def filled(limit: int, *values: str) -> BoundedCache[str]:
    """Return a cache that was asked for words, each a byte for each letter, its own key."""
    cache = BoundedCache[str](limit, len)
    for value in values:
        assert cache.get(value, lambda value=value: value) == value
    return cache


def held(cache: BoundedCache[str], *values: str) -> list[str]:
    return [value for value in values if value in cache]


def test_what_is_held_is_not_made_again() -> None:
    cache, made = BoundedCache[str](9, len), []

    def make() -> str:
        made.append("x")
        return "word"

    assert [cache.get("key", make) for _ in range(3)] == ["word"] * 3
    assert made == ["x"]
    assert cache.bytes == 4


def test_what_was_used_longest_ago_goes_first_and_no_more_than_must() -> None:
    cache = filled(6, "aa", "bb", "cc")
    assert (held(cache, "aa", "bb", "cc"), cache.bytes) == (["aa", "bb", "cc"], 6)
    cache.get("aa", str)  # used now: bb is the oldest
    cache.get("d", lambda: "d")
    assert (held(cache, "aa", "bb", "cc", "d"), cache.bytes) == (["aa", "cc", "d"], 5)


def test_the_newest_is_kept_whatever_its_size() -> None:
    cache = filled(3, "aa", "b", "long word")
    assert (held(cache, "aa", "b", "long word"), cache.bytes) == (["long word"], 9)
    cache.get("c", lambda: "c")
    assert (held(cache, "long word", "c"), cache.bytes) == (["c"], 1)


def test_cleared_it_holds_nothing() -> None:
    cache = filled(9, "aa", "b")
    cache.clear()
    assert (held(cache, "aa", "b"), cache.bytes) == ([], 0)
    assert cache.get("aa", lambda: "new") == "new"
    assert cache.bytes == 3


@given(st.lists(st.integers(1, 9), max_size=40), st.integers(1, 20))
def test_it_holds_the_most_recent_that_fit(asked: list[int], limit: int) -> None:
    cache = BoundedCache[int](limit, lambda size: size)
    recent: list[int] = []
    for size in asked:
        was = size in recent
        assert (size in cache) == was
        cache.get(size, lambda size=size: size)
        recent = [*(each for each in recent if each != size), size]
        while not was and sum(recent) > limit and len(recent) > 1:
            recent.pop(0)
        assert [each for each in range(1, 10) if each in cache] == sorted(recent)
        assert cache.bytes == sum(recent)
