"""Ranks average their values. Start: ferroflow run -np 4 -- python numpy_average.py"""

import numpy as np

import ferroflow.hvd as hvd

hvd.init()
mine = np.full(3, float(hvd.rank()))
mean = hvd.allreduce(mine)
print(f"rank {hvd.rank()} of {hvd.size()}: the mean of all ranks is {mean[0]}")
