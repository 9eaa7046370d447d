"""What goes wrong below an engine."""


class KernelError(RuntimeError):
    """A kernel does not compile, cannot be launched as asked, or did something forbidden."""
