"""What packaging/archives.py makes of a folder; whole bundles are tried by `make test-package`."""

import tarfile
from pathlib import Path

import numpy as np
import pytest

PACKAGING = Path(__file__).resolve().parent.parent / "packaging"


@pytest.mark.long
def test_an_archive_of_many_parts_holds_what_the_folder_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(PACKAGING)
    import archives

    bundle = tmp_path / "bundle"
    (bundle / "inside").mkdir(parents=True)
    content = {f"inside/{n}": np.random.default_rng(n).bytes(3_000_000 * (n % 2)) for n in range(6)}
    for name, data in content.items():
        (bundle / name).write_bytes(data)
    (bundle / "link").symlink_to("inside/1")
    packed = archives.tar(bundle, tmp_path / "out.tar.xz", 2**21)
    assert packed.read_bytes().count(b"\xfd7zXZ\0") > 3
    with tarfile.open(packed) as archive:
        assert {info.uid for info in archive} == {0}
        assert archive.getmember("tilescope/link").linkname == "inside/1"
        for name, data in content.items():
            file = archive.extractfile(f"tilescope/{name}")
            assert file.read() == data
