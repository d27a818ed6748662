"""Files: what `tf.gfile` and `tf.io.gfile` are made of. Only local files are supported."""

import contextlib
import errno
import fnmatch
import glob
import os
import shutil

from ferroflow.python.framework import errors

_MODES = {"r", "w", "a", "r+", "w+", "a+", "rb", "wb", "ab", "r+b", "w+b", "a+b", "rb+", "wb+", "ab+"}


def _path(path):
    path = os.fspath(path)
    if isinstance(path, bytes):
        path = path.decode("utf-8")
    if path.startswith("file://"):
        path = path[len("file://") :]
    elif "://" in path:
        scheme = path.split("://")[0]
        raise errors.UnimplementedError(None, None, f"File system scheme '{scheme}' not implemented (file: '{path}')")
    return path


@contextlib.contextmanager
def _as_tf_errors(path):
    """Turns an OSError into the error TensorFlow raises for it."""
    try:
        yield
    except OSError as e:
        text = f"{path}; {os.strerror(e.errno) if e.errno else e}"
        kinds = {
            errno.ENOENT: errors.NotFoundError,
            errno.EEXIST: errors.AlreadyExistsError,
            errno.EACCES: errors.PermissionDeniedError,
            errno.EPERM: errors.PermissionDeniedError,
            errno.ENOTEMPTY: errors.FailedPreconditionError,
            errno.EISDIR: errors.FailedPreconditionError,
            errno.ENOTDIR: errors.FailedPreconditionError,
            errno.ENOSPC: errors.ResourceExhaustedError,
        }
        raise kinds.get(e.errno, errors.UnknownError)(None, None, text) from None


class FileIO:
    """A file. It is opened when it is first used."""

    def __init__(self, name, mode, encoding="utf-8"):
        self._name, self._mode, self._encoding = name, mode, encoding
        if mode not in _MODES:
            raise errors.InvalidArgumentError(None, None, "mode is not 'r' or 'w' or 'a' or 'r+' or 'w+' or 'a+'")
        self._binary = "b" in mode
        self._file = None

    @property
    def name(self):
        return self._name

    @property
    def mode(self):
        return self._mode

    def _opened(self, write):
        readable = self._mode[0] == "r" or "+" in self._mode
        writable = self._mode[0] != "r" or "+" in self._mode
        if write and not writable:
            raise errors.PermissionDeniedError(None, None, "File isn't open for writing")
        if not write and not readable:
            raise errors.PermissionDeniedError(None, None, "File isn't open for reading")
        if self._file is None:
            with _as_tf_errors(self._name):
                mode = "".join(c for c in self._mode if c != "b") + "b"
                self._file = open(_path(self._name), mode)  # noqa: SIM115
        return self._file

    def _text(self, data):
        return data if self._binary else data.decode(self._encoding)

    def size(self):
        return stat(self._name).length

    def write(self, file_content):
        data = file_content.encode(self._encoding) if isinstance(file_content, str) else bytes(file_content)
        with _as_tf_errors(self._name):
            return self._opened(True).write(data)

    def read(self, n=-1):
        with _as_tf_errors(self._name):
            return self._text(self._opened(False).read(n))

    def seek(self, offset=None, whence=0, position=None):
        if offset is None:
            offset = position
        if offset is None:
            raise TypeError("seek(): offset argument required")
        if whence not in (0, 1, 2):
            raise errors.InvalidArgumentError(None, None, f"Invalid whence argument: {whence}. Valid values are 0, 1, or 2.")
        with _as_tf_errors(self._name):
            self._opened(False).seek(offset, whence)

    def tell(self):
        if self._file is None:
            self._opened(self._mode[0] != "r")
        return self._file.tell()

    def seekable(self):
        return True

    def readline(self):
        with _as_tf_errors(self._name):
            return self._text(self._opened(False).readline())

    def readlines(self):
        return list(self)

    def __iter__(self):
        return self

    def __next__(self):
        line = self.readline()
        if not line:
            raise StopIteration
        return line

    next = __next__

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def flush(self):
        if self._file is not None:
            self._file.flush()

    def close(self):
        if self._file is None and self._mode[0] in "wa":
            self._opened(True)
        if self._file is not None:
            self._file.close()
            self._file = None


class GFile(FileIO):
    def __init__(self, name, mode="r"):
        super().__init__(name, mode)


Open = GFile


class FastGFile(GFile):
    pass


class FileStatistics:
    def __init__(self, found):
        self.length, self.mtime_nsec = found.st_size, found.st_mtime_ns
        self.is_directory = os.path.stat.S_ISDIR(found.st_mode)


def file_exists(path):
    return os.path.exists(_path(path))


file_exists_v2 = file_exists


def delete_file(filename):
    with _as_tf_errors(filename):
        os.remove(_path(filename))


delete_file_v2 = delete_file


def read_file_to_string(filename, binary_mode=False):
    with FileIO(filename, "rb" if binary_mode else "r") as f:
        return f.read()


def write_string_to_file(filename, file_content):
    with FileIO(filename, "w") as f:
        f.write(file_content)


def get_matching_files(filename):
    """The files that match a pattern, or any of some patterns."""
    patterns = [filename] if isinstance(filename, (str, bytes, os.PathLike)) else filename
    found = []
    for pattern in patterns:
        found.extend(sorted(glob.glob(_path(pattern))))
    return found


get_matching_files_v2 = get_matching_files


def create_dir(dirname):
    """Makes a directory; one that exists is no error."""
    with _as_tf_errors(dirname):
        try:
            os.mkdir(_path(dirname))
        except FileExistsError:
            if not os.path.isdir(_path(dirname)):
                raise


create_dir_v2 = create_dir


def recursive_create_dir(dirname):
    with _as_tf_errors(dirname):
        os.makedirs(_path(dirname), exist_ok=True)


recursive_create_dir_v2 = recursive_create_dir


def copy(oldpath, newpath, overwrite=False):
    _refuse_existing(newpath, overwrite)
    with _as_tf_errors(oldpath):
        shutil.copyfile(_path(oldpath), _path(newpath))


copy_v2 = copy


def _refuse_existing(path, overwrite):
    if not overwrite and file_exists(path):
        raise errors.AlreadyExistsError(None, None, "file already exists")


def rename(oldname, newname, overwrite=False):
    _refuse_existing(newname, overwrite)
    with _as_tf_errors(oldname):
        os.replace(_path(oldname), _path(newname))


rename_v2 = rename


def atomic_write_string_to_file(filename, contents, overwrite=True):
    """Writes a temporary file and gives it its name at the end."""
    temporary = f"{_path(filename)}.tmp{os.urandom(8).hex()}"
    write_string_to_file(temporary, contents)
    try:
        rename(temporary, filename, overwrite)
    except errors.OpError:
        delete_file(temporary)
        raise


def delete_recursively(dirname):
    with _as_tf_errors(dirname):
        if os.path.isdir(_path(dirname)):
            shutil.rmtree(_path(dirname))
        else:
            os.remove(_path(dirname))


delete_recursively_v2 = delete_recursively


def is_directory(dirname):
    return os.path.isdir(_path(dirname))


is_directory_v2 = is_directory


def list_directory(dirname):
    """The names in a folder; a folder's name ends with a slash."""
    if not is_directory(dirname):
        raise errors.NotFoundError(node_def=None, op=None, message=f"Could not find directory {dirname}")
    with _as_tf_errors(dirname):
        return os.listdir(_path(dirname))


list_directory_v2 = list_directory


def walk(top, in_order=True):
    for folder, folders, files in os.walk(_path(top), topdown=in_order):
        yield folder, folders, files


def walk_v2(top, topdown=True, onerror=None):
    yield from os.walk(_path(top), topdown, onerror)


def stat(filename):
    with _as_tf_errors(filename):
        return FileStatistics(os.stat(_path(filename)))


stat_v2 = stat


def join(path, *paths):
    return os.path.join(path, *paths)


def filecmp(filename_a, filename_b):
    return read_file_to_string(filename_a, True) == read_file_to_string(filename_b, True)


def file_crc32(filename, block_size=1 << 20):
    import zlib

    crc = 0
    with open(_path(filename), "rb") as f:
        while block := f.read(block_size):
            crc = zlib.crc32(block, crc)
    return hex(crc & 0xFFFFFFFF)


def fnmatch_filter(names, pattern):
    return fnmatch.filter(names, pattern)


def get_registered_schemes():
    return ["", "file"]
