"""Run at the start of each process whose PYTHONPATH names this folder: puts CuPy on the double.

CuPy's module of the CUDA runtime is the one that build.py has made; all others are the wheel's.
NVRTC's PTX is put aside beside each cubin.
"""

import ctypes
import os
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ExtensionFileLoader, PathFinder
from importlib.util import spec_from_file_location


class Runtime(ExtensionFileLoader):
    """Loads what calls the CUDA runtime, of which the double has what is used."""

    def create_module(self, spec):
        double = ctypes.CDLL("libcuda.so.1", ctypes.RTLD_GLOBAL)
        flags = sys.getdlopenflags()
        sys.setdlopenflags(os.RTLD_LAZY)  # functions that are missing are missed when called
        try:
            module = super().create_module(spec)
        finally:
            sys.setdlopenflags(flags)
        from tests.kernels.gpu_double.code import load

        double.double_loader(load)
        return module


class Nvrtc(ExtensionFileLoader):
    """Loads CuPy's binding of NVRTC."""

    def exec_module(self, module):
        super().exec_module(module)
        get_cubin = module.getCUBIN

        def with_ptx(program):
            from tests.kernels.gpu_double.code import keep

            cubin = get_cubin(program)
            keep(cubin, bytes(module.getPTX(program)).rstrip(b"\0").decode())
            return cubin

        module.getCUBIN = with_ptx


class Finder(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "cupy_backends.cuda.api.runtime":
            file = os.environ["DOUBLE_RUNTIME"]
            return spec_from_file_location(name, file, loader=Runtime(name, file))
        if name == "cupy_backends.cuda.libs.nvrtc":
            spec = PathFinder.find_spec(name, path)
            spec.loader = Nvrtc(name, spec.origin)
            return spec
        return None


sys.meta_path.insert(0, Finder())
