"""What a killed process has left beside a file: taken away where it is nobody's any more."""

import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from simulator.base import files
from simulator.base.files import clear_stale, part_of, write_atomically
from tests.helpers.refused import refused

HOUR = 3600.0


def aged(path: Path, seconds: float) -> Path:
    """Make a file, or a folder with one in it, that was last touched so long ago."""
    if path.suffix == ".part" and path.name.startswith(".dir"):
        path.mkdir()
        (path / "frame.png").write_bytes(b"x")
    else:
        path.write_bytes(b"half")
    then = time.time() - seconds
    os.utime(path, (then, then))
    return path


def test_parts_lie_beside_and_each_has_a_name_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    assert part_of(path, "0123abcd") == tmp_path / ".a.toml.0123abcd.part"
    names = {part_of(path).name for _ in range(20)}
    assert len(names) == 20
    assert {len(name) for name in names} == {len(".a.toml.0123abcd.part")}


def test_old_parts_are_taken_away_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    old = aged(part_of(path), 10)
    kept = [
        aged(part_of(path), 0),  # its writer may not have locked it yet
        aged(part_of(tmp_path / "b.toml"), 10),  # of another file
        aged(tmp_path / ".a.toml.0123abc.part", 10),  # no name of ours
        aged(tmp_path / ".a.toml.0123abcd.part.bak", 10),
        aged(tmp_path / "a.toml", 10),
    ]
    clear_stale(path)
    assert not old.exists()
    assert all(part.exists() for part in kept)


def test_folders_are_kept_for_an_hour(tmp_path: Path) -> None:
    path = tmp_path / "dir"
    old, young = aged(part_of(path), HOUR + 60), aged(part_of(path), HOUR - 60)
    clear_stale(path)
    assert not old.exists()
    assert (young / "frame.png").exists()
    clear_stale(tmp_path / "no such folder" / "a.toml")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such locks")
def test_what_a_living_process_writes_is_kept(tmp_path: Path) -> None:
    import fcntl

    path = tmp_path / "a.toml"
    part = aged(part_of(path), 10)
    with part.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        clear_stale(path)
        assert part.exists()
    clear_stale(path)
    assert not part.exists()


def test_writing_takes_the_old_parts_away_and_leaves_none(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    aged(part_of(path), 10)

    def write(out: object) -> None:
        out.write(b"whole")
        assert len(list(tmp_path.iterdir())) == 1  # the part; the old one is gone
        clear_stale(path)

    write_atomically(path, write)
    assert [each.name for each in tmp_path.iterdir()] == ["a.toml"]
    assert path.read_bytes() == b"whole"

    def fail(out: object) -> None:
        out.write(b"other")
        raise OSError(28, "No space left on device")

    assert "No space left on device" in refused(write_atomically, path, fail)
    assert [each.name for each in tmp_path.iterdir()] == ["a.toml"]
    assert path.read_bytes() == b"whole"


def test_all_is_on_the_disk_before_it_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.toml"
    path.write_bytes(b"old")
    real, seen = os.fsync, []

    def sync(descriptor: int) -> None:
        real(descriptor)
        seen.append((os.fstat(descriptor).st_size, path.read_bytes()))

    monkeypatch.setattr(os, "fsync", sync)
    write_atomically(path, lambda out: out.write(b"x" * 1000))
    assert seen == [(1000, b"old")]
    assert path.read_bytes() == b"x" * 1000


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such locks")
def test_what_is_being_written_is_locked_under_the_name_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    part = part_of(path, "0123abcd")

    def write(out: object) -> None:
        then = time.time() - 2 * HOUR
        os.utime(part, (then, then))
        clear_stale(path)
        assert part.exists()

    write_atomically(path, write, "0123abcd")
    assert not part.exists()


def test_a_file_is_nobodys_after_two_seconds_and_a_folder_after_an_hour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the second, so with a clock that stands still."""
    now = 2.0**30
    monkeypatch.setattr(files, "time", SimpleNamespace(time=lambda: now))
    for name, most in (("a.toml", 2.0), ("dir", HOUR)):
        path = tmp_path / name
        kept, gone = (aged(part_of(path), 0) for _ in range(2))
        for part, seconds in ((kept, most), (gone, most + 0.5)):
            os.utime(part, (now - seconds, now - seconds))
        clear_stale(path)
        assert kept.exists()
        assert not gone.exists()


def test_the_longest_name_can_be_written_and_cleared_up(tmp_path: Path) -> None:
    path = tmp_path / ("ö" * 125 + ".toml")  # 255 bytes in UTF-8
    write_atomically(path, lambda out: out.write(b"whole"))
    assert path.read_bytes() == b"whole"
    part = aged(part_of(path), 10)
    other = aged(part_of(path.with_name("o" + path.name[1:])), 10)
    clear_stale(path)
    assert not part.exists()
    assert other.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="no such pipes")
def test_what_is_no_file_is_not_replaced_by_one(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    assert "pipe" in refused(write_atomically, path, lambda out: out.write(b"new"))
    assert path.is_fifo()
    assert [each.name for each in tmp_path.iterdir()] == ["pipe"]
