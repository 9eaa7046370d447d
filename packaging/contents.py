"""What is shipped beside the modules: texts and numbers that the program opens by their path."""

DATA = [
    ("assets", "assets"),
    ("docs/gpu", "docs/gpu"),
    ("docs/*.md", "docs"),  # the menu Help shows them
    ("kernels/cuda/*.cu*", "kernels/cuda"),
    ("kernels/devices/host/*.h", "kernels/devices/host"),
    ("kernels/devices/host/*.cpp", "kernels/devices/host"),
    ("simulator/program/*ops.py", "simulator/program"),  # the Code panel shows their lines
    ("tests/conformance/flash2-causal-gqa-tails.*", "tests/conformance"),  # for `self-test`
]
"""Each a folder or a pattern in the checkout, and the folder where it lies in what is shipped."""
