"""Prints the tensors of a checkpoint.

    python -m ferroflow.python.tools.inspect_checkpoint --file_name=model.ckpt --all_tensors
"""

import argparse
import re

import numpy as np

from ferroflow.python.training import py_checkpoint_reader


def print_tensors_in_checkpoint_file(file_name, tensor_name, all_tensors=False, all_tensor_names=False,
                                     count_exclude_pattern=""):
    """Prints one tensor, or all, or all names; without a choice, shapes. Then how many parameters there are."""
    reader = py_checkpoint_reader.NewCheckpointReader(file_name)
    shapes, types = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    if all_tensors or all_tensor_names:
        for name in sorted(shapes):
            print(f"tensor: {name} ({types[name].name}) {shapes[name]}")
            if all_tensors:
                print(_value(reader, name))
    elif not tensor_name:
        print(reader.debug_string().decode())
    else:
        print(f"tensor: {tensor_name} ({types[tensor_name].name}) {shapes[tensor_name]}")
        print(_value(reader, tensor_name))
    counted = [shape for name, shape in shapes.items() if not (count_exclude_pattern and re.search(count_exclude_pattern, name))]
    print(f"# Total number of params: {sum(int(np.prod(shape)) for shape in counted)}")


def _value(reader, name):
    try:
        return reader.get_tensor(name)
    except Exception as e:  # pylint: disable=broad-except
        return f"<no value: {e}>"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--file_name", required=True)
    parser.add_argument("--tensor_name", default="")
    parser.add_argument("--all_tensors", action="store_true")
    parser.add_argument("--all_tensor_names", action="store_true")
    parser.add_argument("--count_exclude_pattern", default="")
    args = parser.parse_args()
    print_tensors_in_checkpoint_file(args.file_name, args.tensor_name, args.all_tensors, args.all_tensor_names,
                                     args.count_exclude_pattern)


if __name__ == "__main__":
    main()
