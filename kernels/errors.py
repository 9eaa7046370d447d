"""Errors of kernels and devices."""


class KernelError(RuntimeError):
    """A kernel does not compile, cannot be launched as asked, or did something forbidden."""


def comes_from_device(error: BaseException) -> bool:
    """Return whether an error is a device's: one of ours, or what CuPy raises for its driver."""
    package = type(error).__module__.partition(".")[0]
    return isinstance(error, KernelError) or package in ("cupy", "cupy_backends")
