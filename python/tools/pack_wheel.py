"""Makes a wheel of an extension that is compiled already, as maturin would of the one that it compiles.

  python3 python/tools/pack_wheel.py LIBRARY FOLDER     writes FOLDER/ferroflow-….whl
  python3 python/tools/pack_wheel.py --compare WHEEL    fails unless maturin's WHEEL has the same files

`cargo xtask check` tests this wheel: maturin would compile most crates again.  Python 3.11 or newer.
"""

import base64
import fnmatch
import hashlib
import os
import re
import sys
import sysconfig
import tomllib
import zipfile

PYTHON = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
EXTENSION = "ferroflow/_ferroflow.abi3.so"
SKIPPED = "__pycache__", ".so"


def read(*path):
    with open(os.path.join(PYTHON, *path), encoding="utf-8") as file:
        return file.read()


PROJECT = tomllib.loads(read("pyproject.toml"))


def version():
    return tomllib.loads(read("..", "Cargo.toml"))["workspace"]["package"]["version"]


def package_files():
    """The files of the package without the extension, as paths below `python/`."""
    excluded = [pattern.replace("/**", "/*") for pattern in PROJECT["tool"]["maturin"]["exclude"]]
    found = []
    for folder, _, names in os.walk(os.path.join(PYTHON, "ferroflow")):
        for name in names:
            path = os.path.relpath(os.path.join(folder, name), PYTHON)
            if not any(part in path for part in SKIPPED) and not any(fnmatch.fnmatch(path, p) for p in excluded):
                found.append(path)
    return sorted(found)


def metadata():
    project = PROJECT["project"]
    lines = ["Metadata-Version: 2.4", "Name: " + project["name"], "Version: " + version(),
             "Summary: " + project["description"], "Requires-Python: " + project["requires-python"]]
    lines += ["Requires-Dist: " + need for need in project["dependencies"]]
    lines += ["Description-Content-Type: text/markdown", "", read(project["readme"])]
    return "\n".join(lines)


def entry_points():
    project = PROJECT["project"]
    groups = {"console_scripts": project["scripts"], **project["entry-points"]}
    texts = ["[%s]\n%s\n" % (group, "\n".join("%s=%s" % item for item in names.items()))
             for group, names in groups.items()]
    return "\n".join(texts)


def tag():
    oldest = re.search(r"3\.(\d+)", PROJECT["project"]["requires-python"]).group(1)
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return "cp3%s-abi3-%s" % (oldest, platform)


def digest(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def pack(library, folder):
    name = "%s-%s" % (PROJECT["project"]["name"], version())
    info = name + ".dist-info/"
    contents = {}
    for path in package_files():
        with open(os.path.join(PYTHON, path), "rb") as file:
            contents[path] = file.read()
    with open(library, "rb") as file:
        contents[EXTENSION] = file.read()
    wheel = "Wheel-Version: 1.0\nGenerator: pack_wheel\nRoot-Is-Purelib: false\nTag: %s\n" % tag()
    for path, text in ("METADATA", metadata()), ("WHEEL", wheel), ("entry_points.txt", entry_points()):
        contents[info + path] = text.encode()
    record = ["%s,%s,%d" % (path, digest(data), len(data)) for path, data in contents.items()]
    contents[info + "RECORD"] = "\n".join(record + [info + "RECORD,,", ""]).encode()
    os.makedirs(folder, exist_ok=True)
    target = os.path.join(folder, "%s-%s.whl" % (name, tag()))
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for path, data in contents.items():
            archive.writestr(path, data)
    print(target)


def compare(wheel):
    with zipfile.ZipFile(wheel) as archive:
        theirs = {name for name in archive.namelist() if ".dist-info/" not in name and not name.endswith("/")}
    ours = {*package_files(), EXTENSION}
    if theirs != ours:
        sys.exit("the wheels differ: only maturin's has %s, only ours has %s"
                 % (sorted(theirs - ours), sorted(ours - theirs)))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    if sys.argv[1] == "--compare":
        compare(sys.argv[2])
    else:
        pack(*sys.argv[1:])
