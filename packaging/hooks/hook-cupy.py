"""What PyInstaller cannot see of CuPy: its Cython modules hide their imports.

build.spec lists what of it stays out. The CUDA runtime is linked into its modules.
"""

from PyInstaller.utils.hooks import collect_submodules, copy_metadata

hiddenimports = [
    "graphlib",
    "cupyx",
    *collect_submodules("cupy", filter=lambda name: not name.startswith("cupy.testing.")),
    *collect_submodules("cupy_backends"),
    *collect_submodules("cuda.pathfinder"),
]
datas = copy_metadata("cupy-cuda13x")
