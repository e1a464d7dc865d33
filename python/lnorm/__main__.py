"""The program: python -m lnorm."""

import ctypes
import os
import sys

from . import _library


def main() -> int:
    words = [b"lnorm", *map(os.fsencode, sys.argv[1:])]
    status: int = _library.main(len(words), (ctypes.c_char_p * (len(words) + 1))(*words))
    return status


if __name__ == "__main__":
    sys.exit(main())
