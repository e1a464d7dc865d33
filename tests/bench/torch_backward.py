# Gradients of layer normalization, as one would compute them with PyTorch: torch_backward.py X DY DX DWEIGHT DBIAS
import sys

import numpy as np
import torch

x, dy = (torch.from_numpy(np.load(path)) for path in sys.argv[1:3])
weight, bias = torch.ones(x.shape[-1]), torch.zeros(x.shape[-1])
for leaf in (x, weight, bias):
    leaf.requires_grad_()
torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias).backward(dy)
for path, leaf in zip(sys.argv[3:], (x, weight, bias)):
    np.save(path, leaf.grad.numpy())
