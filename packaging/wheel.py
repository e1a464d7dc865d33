#!/usr/bin/python3
"""Makes a wheel of what build/release installs, by the metadata of pyproject.toml: packaging/wheel.py

Unlike pip's own it runs on machines without our libraries, and needs no scikit-build-core, which Debian 12 lacks.
"""

import pathlib
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[1]
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = CONFIG["project"]
VERSION = CONFIG["tool"]["scikit-build"]["metadata"]["version"]
RELEASE = "{}-{}".format(PROJECT["name"], re.search(VERSION["regex"], (ROOT / VERSION["input"]).read_text())["value"])

# What is built here needs no newer glibc than this machine's.
PYTHON = "cp{}{}".format(*sys.version_info)
MACHINE = sysconfig.get_platform().removeprefix("linux-").replace("-", "_")
TAG = "{0}-{0}-manylinux_{1}_{2}".format(PYTHON, platform.libc_ver()[1].replace(".", "_"), MACHINE)

# Where the package is, seen from the program: in a venv and at --user, in Debian's system, in Fedora's, and with --target.
LIBRARIES = "python{}.{}".format(*sys.version_info)
PLACES = [f"lib/{LIBRARIES}/site-packages/", f"lib/{LIBRARIES}/dist-packages/", f"lib64/{LIBRARIES}/site-packages/", ""]


def run(*command):
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)


def write_metadata(folder):
    name, version = RELEASE.split("-")
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", f"Summary: {PROJECT['description']}",
             f"Requires-Python: {PROJECT['requires-python']}",
             *(f"Requires-Dist: {needed}" for needed in PROJECT["dependencies"])]
    (folder / "METADATA").write_text("\n".join(lines) + "\n")
    lines = ["Wheel-Version: 1.0", "Generator: packaging/wheel.py", "Root-Is-Purelib: false", f"Tag: {TAG}"]
    (folder / "WHEEL").write_text("\n".join(lines) + "\n")


with tempfile.TemporaryDirectory() as folder:
    installed, wheel = pathlib.Path(folder, "installed"), pathlib.Path(folder, RELEASE)
    package, info, data = (wheel / name for name in (PROJECT["name"], f"{RELEASE}.dist-info", f"{RELEASE}.data"))
    for component in CONFIG["tool"]["scikit-build"]["install"]["components"]:
        run("cmake", "--install", ROOT / "build/release", "--component", component, "--strip", "--prefix", installed)
    for directory in (info, data / "data"):
        directory.mkdir(parents=True)
    shutil.move(installed / "lib/python3/dist-packages/lnorm", package)
    shutil.move(installed / "bin", data / "scripts")
    shutil.move(installed / "share", data / "data/share")
    (module,), program = package.glob("*.so"), data / "scripts/lnorm"
    run(ROOT / "packaging/carry.sh", package / "lib", data / "data/share/doc/python3-lnorm", module, program)
    run("patchelf", "--set-rpath", "$ORIGIN/lib", module)
    run("patchelf", "--set-rpath", ":".join(f"$ORIGIN/../{place}lnorm/lib" for place in PLACES), program)
    write_metadata(info)
    run(sys.executable, "-m", "wheel", "pack", wheel, "--dest-dir", ROOT / "build")
