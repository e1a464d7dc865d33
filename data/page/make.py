#!/usr/bin/env python3
"""Makes activations.npy, what a layer of a language model might hand on: 192 tokens of 384 channels, float16. A few
channels are large for every token, the first token is larger than the others, and one token has hardly any spread."""

import math
import os
import random
import struct

TOKENS, CHANNELS = 192, 384
random.seed(15)
channel_mean = [random.gauss(0, 0.4) for _ in range(CHANNELS)]
channel_size = [math.exp(random.gauss(0, 0.35)) for _ in range(CHANNELS)]
for channel, mean in ((61, 6.0), (218, -4.5), (301, 3.5)):
    channel_mean[channel], channel_size[channel] = mean, 1.5

values = []
for token in range(TOKENS):
    size = 0.6 + 0.9 * token / TOKENS + 0.3 * math.sin(token / 11)
    shift = 0.5 * math.sin(token / 23)
    if token == 0:
        size, shift = 5.0, 1.0
    if token == 120:
        size, shift = 0.04, 2.5
    for channel in range(CHANNELS):
        values.append(shift + size * (channel_mean[channel] + channel_size[channel] * random.gauss(0, 1)))

header = "{'descr': '<f2', 'fortran_order': False, 'shape': (%d, %d), }" % (TOKENS, CHANNELS)
header += ' ' * (-(len(header) + 11) % 64) + '\n'
with open(os.path.join(os.path.dirname(__file__), 'activations.npy'), 'wb') as file:
    file.write(b'\x93NUMPY\x01\x00' + struct.pack('<H', len(header)) + header.encode())
    file.write(struct.pack('<%de' % len(values), *values))
