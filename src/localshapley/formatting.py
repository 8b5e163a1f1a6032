"""Numbers of any size in words that fit on a line, and text that is safe to print."""

from __future__ import annotations

from math import floor, log10
from unicodedata import category

UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode categories of characters that a terminal may obey instead of showing them."""


def in_words(n: int) -> str:
    """Write a count: in full below ten million, else by its power of ten.

    >>> in_words(4096), in_words(2**40), in_words(2**5000)
    ('4,096', '1.1e12', '1.4e1505')
    """
    if n < 10_000_000:
        return f"{n:,}"
    power = floor(log10(n))
    leading = n // 10 ** (power - 3) / 1000
    if leading >= 9.95:
        leading, power = leading / 10, power + 1
    return f"{leading:.1f}e{power}"


def printable(text: str, keep: str = "") -> str:
    r"""Write out the characters that could change the look of a terminal, except those in `keep`.

    >>> print(printable("red \x1b[31m, back\r"))
    red \x1b[31m, back\r
    """
    return "".join(c if c in keep or category(c) not in UNSEEN else c.encode("unicode_escape").decode() for c in text)


def shortened(text: str, length: int) -> str:
    """A text without its middle, if it is longer: paths, urls and names of columns often differ at their ends.

    >>> shortened("src/test/org/codehaus/groovy/classgen/InnerClassTest.java", 25)
    'src/test/org…assTest.java'
    """
    if len(text) <= length:
        return text
    head = length // 2
    return f"{text[:head]}…{text[len(text) - (length - 1 - head) :]}"


def with_row(name: str, length: int, row: int) -> str:
    r"""Return a name or, if it is longer, its ends and the number of its row.

    >>> with_row("src/test/org/codehaus/groovy/classgen/InnerClassTest.java", 30, 7)
    'src/test/or…sTest.java (row\xa07)'
    """
    end = f" (row\N{NO-BREAK SPACE}{row})"
    return name if len(name) <= length else shortened(name, length - len(end)) + end


def kinds(unit: str) -> tuple[str, str]:
    """What is valued, and what it is valued on, by the unit of a valuation.

    >>> kinds("row"), kinds("owner"), kinds("node")
    (('training rows', 'test rows'), ('owners', 'test rows'), ('training nodes', 'test nodes'))
    """
    return "owners" if unit == "owner" else f"training {unit}s", "test nodes" if unit == "node" else "test rows"


def one(name: str) -> str:
    """A name with its article.

    >>> one("row"), one("owner")
    ('a row', 'an owner')
    """
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def probability(p: float) -> str:
    """Write an estimated probability: none is so sure that it should read as 0 or 1.

    >>> probability(0.9993), probability(0.25), probability(0.001)
    ('> 0.99', '0.25', '< 0.01')
    """
    return "> 0.99" if p > 0.99 else "< 0.01" if p < 0.01 else f"{p:.2f}"


NAMED = ((10**12, "trillion"), (10**9, "billion"), (10**6, "million"))
RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def counted(n: int, unit: str) -> str:
    """Write a count of things with their name, for people who do not read powers of ten.

    >>> counted(1, "training"), counted(4096, "training"), counted(2**40, "training")
    ('1 training', '4,096 trainings', '1.1 trillion trainings')
    >>> counted(2**718, "training")
    '1.4 × 10²¹⁶ trainings'
    """
    if n >= 10**15:
        leading, _, power = in_words(n).partition("e")
        return f"{leading} × 10{power.translate(RAISED)} {unit}s"
    for size, name in NAMED:
        if n >= size:
            return f"{n / size:.1f} {name} {unit}s"
    return f"{n:,} {unit}" + "s" * (n != 1)


def duration(seconds: float) -> str:
    """Write a time span in the unit that fits.

    >>> duration(4.2e-6), duration(0.0031), duration(95), duration(7300), duration(1e12)
    ('4.2 µs', '3.1 ms', '95.0 s', '2.0 h', '3e+04 years')
    """
    for limit, size, unit in (
        (1e-3, 1e-6, "µs"),
        (1, 1e-3, "ms"),
        (120, 1, "s"),
        (7200, 60, "min"),
        (172_800, 3600, "h"),
    ):
        if seconds < limit:
            return f"{seconds / size:.1f} {unit}"
    days = seconds / 86_400
    return f"{days:.0f} days" if days < 1000 else f"{days / 365.25:.0e} years"
