#!/usr/bin/python3
"""Makes a wheel of what a build installs, by the metadata of pyproject.toml: packaging/wheel.py [BUILD [MACHINE]]

BUILD is build/release if not given; of a cross build its folder, whose sysroot/ has the libraries, and MACHINE as in aarch64.
Unlike pip's own it runs on machines without our libraries, and needs no scikit-build-core, which Debian 12 lacks.
"""

import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / "build/release"
MACHINE = sys.argv[2] if len(sys.argv) > 2 else platform.machine()
SYSROOT = BUILD / "sysroot" if MACHINE != platform.machine() else ""
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = CONFIG["project"]
VERSION = CONFIG["tool"]["scikit-build"]["metadata"]["version"]
RELEASE = "{}-{}".format(PROJECT["name"], re.search(VERSION["regex"], (ROOT / VERSION["input"]).read_text())["value"])

# In which version of manylinux, which is that of glibc, libstdc++ has GLIBCXX_3.4.N.
LIBSTDCXX = {29: 34, 30: 35, 31: 38, 32: 38, 33: 39}


def run(*command):
    words = [str(word) for word in command]
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, "SYSROOT": str(SYSROOT)}).stdout


def manylinux(files):
    """The oldest 2.N whose machines have all symbols that the files take from elsewhere."""
    needed = "".join(run("readelf", "--wide", "--version-info", file).partition("section '.gnu.version_r'")[2] for file in files)
    of_glibc = [int(minor) for minor in re.findall(r"Name: GLIBC_2\.(\d+)", needed)]
    of_libstdcxx = [int(patch) for patch in re.findall(r"Name: GLIBCXX_3\.4\.(\d+)", needed)]
    if max(of_libstdcxx) > max(LIBSTDCXX):
        sys.exit(f"wheel.py: no manylinux is known that has GLIBCXX_3.4.{max(of_libstdcxx)}")
    return max(*of_glibc, *(LIBSTDCXX.get(patch, 0) for patch in of_libstdcxx))


def write_metadata(folder, tag):
    name, version = RELEASE.split("-")
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", f"Summary: {PROJECT['description']}",
             f"Requires-Python: {PROJECT['requires-python']}",
             *(f"Requires-Dist: {needed}" for needed in PROJECT["dependencies"])]
    (folder / "METADATA").write_text("\n".join(lines) + "\n")
    lines = ["Wheel-Version: 1.0", "Generator: packaging/wheel.py", "Root-Is-Purelib: false", f"Tag: {tag}"]
    (folder / "WHEEL").write_text("\n".join(lines) + "\n")


with tempfile.TemporaryDirectory() as folder:
    installed, wheel = pathlib.Path(folder, "installed"), pathlib.Path(folder, RELEASE)
    package, info, data = (wheel / name for name in (PROJECT["name"], f"{RELEASE}.dist-info", f"{RELEASE}.data"))
    for component in CONFIG["tool"]["scikit-build"]["install"]["components"]:
        run("cmake", "--install", BUILD, "--component", component, "--strip", "--prefix", installed)
    for directory in (info, data / "data", package.parent):
        directory.mkdir(parents=True, exist_ok=True)
    shutil.move(installed / "lib/python3/dist-packages/lnorm", package)
    shutil.move(installed / "bin", data / "scripts")
    shutil.move(installed / "share", data / "data/share")
    (package / "lib").mkdir()
    library, program = package / "lib/liblnorm.so.0", data / "scripts/lnorm"
    shutil.copy(next(installed.rglob(library.name)), library)
    # Both find what they need in a folder of their own: where packages are, seen from the program, is not the same everywhere.
    terms, beside = data / "data/share/doc/python3-lnorm", data / "data/lib/lnorm"
    run(ROOT / "packaging/carry.sh", library.parent, terms, library)
    run(ROOT / "packaging/carry.sh", beside, terms, program)
    run("patchelf", "--set-rpath", "$ORIGIN", library)
    run("patchelf", "--set-rpath", "$ORIGIN/../lib/lnorm", program)
    minor = manylinux([program, *library.parent.glob("*.so*"), *beside.glob("*.so*")])
    write_metadata(info, f"py3-none-manylinux_2_{minor}_{MACHINE}")
    print(run(sys.executable, "-m", "wheel", "pack", wheel, "--dest-dir", ROOT / "build"), end="")
