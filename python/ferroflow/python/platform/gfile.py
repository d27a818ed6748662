"""`tf.gfile`: files by path."""

import glob as _glob
import os
import shutil

from ferroflow.python.framework import errors_impl
from ferroflow.python.util import compat


def _path(name):
    name = compat.as_str_any(compat.path_to_str(name))
    return name[len("file://") :] if name.startswith("file://") else name


def _raise(e, path):
    text = f"{path}; {e.strerror or e}"
    if isinstance(e, FileNotFoundError):
        raise errors_impl.NotFoundError(None, None, text) from None
    if isinstance(e, FileExistsError):
        raise errors_impl.AlreadyExistsError(None, None, text) from None
    if isinstance(e, PermissionError):
        raise errors_impl.PermissionDeniedError(None, None, text) from None
    raise errors_impl.FailedPreconditionError(None, None, text) from None


class GFile:
    """A file, which is opened when it is first read or written."""

    def __init__(self, name, mode="r"):
        if mode not in ("r", "w", "a", "r+", "w+", "a+", "rb", "wb", "ab", "r+b", "w+b", "a+b"):
            raise errors_impl.InvalidArgumentError(None, None, f"mode is not 'r' or 'w' or 'a' or one of their variants: {mode}")
        self._name, self._mode, self._file = name, mode, None

    name = property(lambda self: self._name)
    mode = property(lambda self: self._mode)

    @property
    def _open(self):
        if self._file is None:
            try:
                binary = "b" in self._mode
                self._file = open(_path(self._name), self._mode, encoding=None if binary else "utf-8", newline=None if binary else "")
            except OSError as e:
                _raise(e, self._name)
        return self._file

    def read(self, n=-1):
        if "r" not in self._mode and "+" not in self._mode:
            raise errors_impl.PermissionDeniedError(None, None, "File isn't open for reading")
        return self._open.read(n)

    def readline(self):
        return self._open.readline()

    def readlines(self):
        return self._open.readlines()

    def write(self, file_content):
        if "b" in self._mode:
            file_content = compat.as_bytes(file_content)
        elif isinstance(file_content, bytes):
            file_content = compat.as_text(file_content)
        self._open.write(file_content)

    def seek(self, offset=None, whence=0, position=None):
        self._open.seek(position if offset is None else offset, whence)

    def tell(self):
        return self._open.tell()

    def size(self):
        return stat(self._name).length

    def seekable(self):
        return True

    def flush(self):
        if self._file is not None:
            self._file.flush()

    def close(self):
        if self._file is not None:
            self._file.close()
            self._file = None

    def __iter__(self):
        return self

    def __next__(self):
        line = self._open.readline()
        if not line:
            raise StopIteration
        return line

    next = __next__

    def __enter__(self):
        if "w" in self._mode or "a" in self._mode:
            self._open
        return self

    def __exit__(self, *_):
        self.close()


class FastGFile(GFile):
    def __init__(self, name, mode="r"):
        super().__init__(name, mode)


Open = GFile


class _Stat:
    def __init__(self, found):
        self.length, self.mtime_nsec, self.is_directory = found.st_size, found.st_mtime_ns, os.path.stat.S_ISDIR(found.st_mode)


def stat(filename):
    try:
        return _Stat(os.stat(_path(filename)))
    except OSError as e:
        _raise(e, filename)


def exists(filename):
    return os.path.exists(_path(filename))


def is_directory(dirname):
    return os.path.isdir(_path(dirname))


def list_directory(dirname):
    try:
        return os.listdir(_path(dirname))
    except OSError as e:
        if isinstance(e, (FileNotFoundError, NotADirectoryError)):
            raise errors_impl.NotFoundError(None, None, f"Could not find directory {dirname}") from None
        _raise(e, dirname)


def get_matching_files(filename):
    names = filename if isinstance(filename, (list, tuple)) else [filename]
    return [found for name in names for found in sorted(_glob.glob(_path(name)))]


def create_dir(dirname):
    try:
        os.mkdir(_path(dirname))
    except OSError as e:
        _raise(e, dirname)


def recursive_create_dir(dirname):
    try:
        os.makedirs(_path(dirname), exist_ok=True)
    except OSError as e:
        _raise(e, dirname)


def remove(filename):
    try:
        os.remove(_path(filename))
    except OSError as e:
        _raise(e, filename)


def delete_recursively(dirname):
    try:
        shutil.rmtree(_path(dirname))
    except OSError as e:
        _raise(e, dirname)


def copy(oldpath, newpath, overwrite=False):
    if exists(newpath) and not overwrite:
        raise errors_impl.AlreadyExistsError(None, None, "file already exists")
    try:
        shutil.copyfile(_path(oldpath), _path(newpath))
    except OSError as e:
        _raise(e, oldpath)


def rename(oldname, newname, overwrite=False):
    if exists(newname) and not overwrite:
        raise errors_impl.AlreadyExistsError(None, None, "file already exists")
    try:
        os.replace(_path(oldname), _path(newname))
    except OSError as e:
        _raise(e, oldname)


def walk(top, in_order=True):
    for folder, folders, files in os.walk(_path(top), topdown=in_order):
        yield folder, folders, files


def file_exists(filename):
    return exists(filename)


def read_file_to_string(filename, binary_mode=False):
    with GFile(filename, "rb" if binary_mode else "r") as f:
        return f.read()


def write_string_to_file(filename, file_content):
    with GFile(filename, "w" if isinstance(file_content, str) else "wb") as f:
        f.write(file_content)


def atomic_write_string_to_file(filename, contents, overwrite=True):
    temporary = f"{filename}.tmp{os.getpid()}"
    write_string_to_file(temporary, contents)
    rename(temporary, filename, overwrite)



Exists, IsDirectory, ListDirectory, Glob = exists, is_directory, list_directory, get_matching_files
MkDir, MakeDirs, Remove, DeleteRecursively = create_dir, recursive_create_dir, remove, delete_recursively
Copy, Rename, Stat, Walk = copy, rename, stat, walk
glob, isdir, listdir, makedirs, mkdir, rmtree = get_matching_files, is_directory, list_directory, recursive_create_dir, create_dir, delete_recursively
delete_file, create_dir_v2, list_directory_v2 = remove, create_dir, list_directory
