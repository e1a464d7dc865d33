"""By the package that is installed: README's test of a kernel, and the doctests."""

import doctest
import pathlib
import re
import sys

import lnorm
from lnorm import _norms, _reports, testing

README = pathlib.Path(__file__).resolve().parents[1].joinpath("README.md").read_text()


def first_block(language):
    return re.search(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)[1]


kernel = {}
exec(first_block("python"), kernel)
try:
    kernel["test_kernel"]()
except AssertionError as error:
    shown = re.sub("^E +", "", first_block("text"), flags=re.MULTILINE)
    assert f"AssertionError: {error}\n" == shown, error
else:
    sys.exit("installed.py: README's kernel passes")

for module in (lnorm, _norms, _reports, testing):
    failed, tried = doctest.testmod(module)
    assert tried and not failed, module
