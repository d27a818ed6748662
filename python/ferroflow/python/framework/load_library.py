"""Libraries of ops in C++: Ferroflow's ops are written in Rust."""


def load_op_library(library_filename):
    raise NotImplementedError(
        f"cannot load {library_filename}: it is a library of ops for TensorFlow, and Ferroflow's ops are written in Rust. "
        "Take the op's Python fallback if there is one, or tf.py_func."
    )


load_library = load_file_system_library = load_op_library
