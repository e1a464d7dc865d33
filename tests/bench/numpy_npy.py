# Layer normalization of an .npy file, as one would write it with NumPy: numpy_npy.py INPUT OUTPUT
import sys

import numpy as np

x = np.load(sys.argv[1])
mean = x.mean(axis=-1, keepdims=True)
variance = x.var(axis=-1, keepdims=True)
np.save(sys.argv[2], (x - mean) / np.sqrt(variance + x.dtype.type(1e-5)))
