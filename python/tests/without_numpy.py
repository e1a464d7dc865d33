"""The package where there is no NumPy: of any CPython from 3.9 on, by nothing but the standard library."""

import array
import ctypes
import math
import os
import sys


class Refusal:
    """NumPy, and what needs it, is not to be had."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("numpy", "ml_dtypes", "torch", "pandas"):
            raise ImportError(f"no {name} here")


sys.meta_path.insert(0, Refusal())

import lnorm  # noqa: E402
from lnorm import testing  # noqa: E402


def close(found, expected):
    return all(math.isclose(one, right, rel_tol=1e-6, abs_tol=1e-6) for one, right in zip(found, expected))


def raises(kind, words, call):
    try:
        call()
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"no {kind.__name__}")


root = math.sqrt(1.5)
y = lnorm.layer_norm([[1.0, 2.0, 3.0]], eps=0)
assert isinstance(y, memoryview) and (y.shape, y.format) == ((1, 3), "d"), y
assert close(y.tolist()[0], [-root, 0, root])

x = array.array("f", [1, 2, 3, 3, 2, 1])
wide = memoryview(x).cast("B").cast("f", (2, 3))
y = lnorm.layer_norm(wide, [1, 1, 2], 0.5, eps=0, axis=-1)
assert (y.shape, y.format) == ((2, 3), "f") and close(y.tolist()[1], [root + 0.5, 0.5, 0.5 - 2 * root])
out = array.array("f", bytes(4 * 6))
assert lnorm.layer_norm(x, out=out) is out and close(out, lnorm.layer_norm(x.tolist()))
lnorm.layer_norm(wide[::-1], out=memoryview(out).cast("B").cast("f", (2, 3)), eps=0)
assert close(out, [root, 0, -root, -root, 0, root])
y, mean, rstd = lnorm.layer_norm_with_stats((ctypes.c_double * 3 * 2)((1, 2, 3), (0, 0, 6)), eps=0)
assert (mean.tolist(), mean.shape, rstd.format) == ([[2.0], [2.0]], (2, 1), "d")
dx, dweight, dbias = lnorm.layer_norm_backward([[1.0, 0.0, 2.0]], [[1.0, 2.0, 3.0]])
assert dbias.tolist() == [1.0, 0.0, 2.0] and dx.shape == (1, 3)
assert lnorm.softmax([0, 0]).tolist() == [0.5, 0.5]
assert lnorm.layer_norm([[], []]).shape == (2, 0) and lnorm.layer_norm(2).shape == ()
assert close(lnorm.rms_norm([3.0, 4.0], eps=0).tolist(), [3 / math.sqrt(12.5), 4 / math.sqrt(12.5)])
raises(ValueError, "the list is ragged", lambda: lnorm.layer_norm([[1.0, 2.0], [3.0]]))
raises(ValueError, "beyond the range of 64-bit integers", lambda: lnorm.layer_norm([1, 2**64]))
raises(TypeError, "there is no option", lambda: lnorm.layer_norm(x, no_such=1))
raises(TypeError, 'expected out=, or another dtype', lambda: lnorm.layer_norm(x, dtype="bfloat16"))
bits = bytearray(12)
raises(ValueError, "out: is uint8 of shape (12)", lambda: lnorm.layer_norm(x, out=bits))

rows = [[float((7 * i * i + 3 * j) % 11) for j in range(8)] for i in range(4)]
right = lnorm.layer_norm(rows)
assert lnorm.check(rows, right).verdict == "correctly rounded"
wrong = lnorm.check(rows, lnorm.layer_norm(rows, eps_on="std"))
assert wrong.cause["ids"] == ["eps-on-std"] and not wrong and wrong.to_dict()["command"] == "check"
raises(AssertionError, "y differs: eps is added to the standard deviation", lambda: testing.assert_layer_norm(lnorm.layer_norm(rows, eps_on="std"), rows))
testing.assert_close(right.tolist(), right)
assert lnorm.mutants(rows, kernels="ddof-1", rtol=1e-3)
if "LNORM_WITHOUT_INPUTS" not in os.environ:
    cases = lnorm.inputs((4, 100))
    assert cases[0].x.format == "f" and cases[0].x.shape == (4, 100)
    assert lnorm.mutants(cases, skip_kernels="truncated,away")
assert "numpy" not in sys.modules
