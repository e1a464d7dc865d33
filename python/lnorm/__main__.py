"""The program: python -m lnorm."""

import sys

from . import _lnorm


def main() -> int:
    return _lnorm.main(["lnorm", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
