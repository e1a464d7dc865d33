"""Layer normalization, exact: every number is the value of the formula, rounded once.

The norms take any tensor: of NumPy, PyTorch, JAX, CuPy, pandas, or what has ``__dlpack__`` or the buffer protocol, without a
copy where it is on the host. `check` says whether a kernel's output is right, and if not which bug explains it;
`lnorm.testing` has the same as assertions.

>>> import lnorm
>>> lnorm.layer_norm([[1.0, 2.0, 3.0]], eps=0)
array([[-1.22474487,  0.        ,  1.22474487]])
"""

from . import testing
from ._library import __version__
from ._norms import group_norm, layer_norm, layer_norm_backward, layer_norm_with_stats, quantize, rms_norm, softmax
from ._reports import Case, Comparison, Inputs, Mutants, Report, Verdict, check, compare, inputs, mutants

__all__ = [
    "Case", "Comparison", "Inputs", "Mutants", "Report", "Verdict", "__version__", "check", "compare", "group_norm", "inputs", "layer_norm",
    "layer_norm_backward", "layer_norm_with_stats", "mutants", "quantize", "rms_norm", "softmax", "testing",
]  # fmt: skip
