"""`tf.gfile` and `tf.io.gfile`: names for the functions of `file_io`."""

from ferroflow.python.lib.io.file_io import (  # noqa: F401
    FastGFile,
    GFile,
    Open,
    atomic_write_string_to_file,
    copy,
    create_dir,
    delete_file,
    delete_recursively,
    file_exists,
    get_matching_files,
    is_directory,
    join,
    list_directory,
    read_file_to_string,
    recursive_create_dir,
    rename,
    stat,
    walk,
    write_string_to_file,
)

Copy = copy
DeleteRecursively = rmtree = delete_recursively
Exists = exists = file_exists
Glob = glob = get_matching_files
IsDirectory = isdir = is_directory
ListDirectory = listdir = list_directory
MakeDirs = makedirs = recursive_create_dir
MkDir = mkdir = create_dir
Remove = remove = delete_file
Rename = rename
Stat = stat
Walk = walk
