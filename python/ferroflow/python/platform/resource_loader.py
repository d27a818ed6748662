"""`tf.resource_loader`: files that lie beside a program's source."""

import os
import sys


def load_resource(path):
    """The bytes of a file of the package."""
    with open(get_path_to_datafile(path), "rb") as f:
        return f.read()


def get_data_files_path():
    """The folder of the file that calls this function."""
    return os.path.dirname(sys._getframe(1).f_code.co_filename)


def get_root_dir_with_all_resources():
    return os.path.dirname(sys._getframe(1).f_code.co_filename)


def get_path_to_datafile(path):
    frame = sys._getframe(1)
    while frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return os.path.join(os.path.dirname(frame.f_code.co_filename), path)


def readahead_file_path(path, readahead="128M"):
    del readahead
    return path
