# Layer normalization of nested lists in JSON, with Python and NumPy: numpy_json.py INPUT OUTPUT
import json
import sys

import numpy as np

with open(sys.argv[1]) as file:
    x = np.array(json.load(file), dtype=np.float32)
mean = x.mean(axis=-1, keepdims=True)
variance = x.var(axis=-1, keepdims=True)
with open(sys.argv[2], "w") as file:
    json.dump(((x - mean) / np.sqrt(variance + np.float32(1e-5))).tolist(), file)
