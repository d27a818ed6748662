"""A sampler that shares a data set anew when the ranks change."""

import math
import random

import torch.utils.data

from .. import mpi_ops


class ElasticSampler(torch.utils.data.Sampler):
    """Divides the samples of a data set between the ranks. Samples that were processed before the
    ranks changed are not given again in the same epoch."""

    def __init__(self, dataset, shuffle=True, seed=0):
        self.dataset, self.shuffle, self.seed = dataset, shuffle, seed
        self.epoch = 0
        self.processed_indices = set()
        self.reset()

    def set_epoch(self, epoch):
        """Begins an epoch: all samples are open again."""
        self.epoch = epoch
        self.processed_indices = set()
        self.reset()

    def record_batch(self, batch_idx, batch_size):
        """Notes that the batch of this number has been processed."""
        self.record_indices(self.get_indices(batch_idx, batch_size))

    def record_indices(self, indices):
        self.processed_indices.update(indices)

    def get_indices(self, batch_idx, batch_size):
        start = batch_idx * batch_size
        return self.indices[start:start + batch_size]

    def state_dict(self):
        return {"epoch": self.epoch, "processed_indices": set(self.processed_indices)}

    def load_state_dict(self, state_dict):
        self.epoch = state_dict["epoch"]
        self.processed_indices = set(state_dict["processed_indices"])
        self.reset()

    def reset(self):
        """Divides the samples that are left between the ranks that there are now."""
        self.num_replicas, self.rank = mpi_ops.size(), mpi_ops.rank()
        left = [i for i in range(len(self.dataset)) if i not in self.processed_indices]
        if self.shuffle:
            random.Random(self.seed + self.epoch).shuffle(left)
        self.remaining_indices = left
        self.num_samples = int(math.ceil(len(left) / self.num_replicas))
        self.total_size = self.num_samples * self.num_replicas
        # All ranks get as many samples: the first ones are given twice.
        padded = left + left[:self.total_size - len(left)] if left else []
        while left and len(padded) < self.total_size:
            padded += left[:self.total_size - len(padded)]
        self.indices = padded[self.rank::self.num_replicas]

    def __iter__(self):
        return iter(self.indices)

    def __len__(self):
        return self.num_samples
