"""`tf.data.experimental`: transformations for `Dataset.apply`."""

from ferroflow.python.data.ops.dataset_ops import AUTOTUNE, INFINITE, UNKNOWN  # noqa: F401

INFINITE_CARDINALITY, UNKNOWN_CARDINALITY = INFINITE, UNKNOWN


def scan(initial_state, scan_func):
    return lambda dataset: dataset.scan(initial_state, scan_func)


def unbatch():
    return lambda dataset: dataset.unbatch()


def enumerate_dataset(start=0):
    return lambda dataset: dataset.enumerate(start)


def take_while(predicate):
    return lambda dataset: dataset.take_while(predicate)


def map_and_batch(map_func, batch_size, num_parallel_batches=None, drop_remainder=False, num_parallel_calls=None):
    calls = num_parallel_calls if num_parallel_calls is not None else num_parallel_batches
    return lambda dataset: dataset.map(map_func, calls).batch(batch_size, drop_remainder)


def shuffle_and_repeat(buffer_size, count=None, seed=None):
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def parallel_interleave(map_func, cycle_length, block_length=1, sloppy=False, buffer_output_elements=None, prefetch_input_elements=None):
    del buffer_output_elements, prefetch_input_elements
    return lambda dataset: dataset.interleave(map_func, cycle_length, block_length, cycle_length, deterministic=not sloppy)


def batch_and_drop_remainder(batch_size):
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def ignore_errors(log_warning=False):
    return lambda dataset: dataset._op("IgnoreErrorsDataset", [], {"log_warning": log_warning})


def prefetch_to_device(device, buffer_size=None):
    del device
    return lambda dataset: dataset.prefetch(buffer_size)


def cardinality(dataset):
    return dataset.cardinality()
