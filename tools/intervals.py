"""Intervals of dyadic numbers, m 2^e with whole m and e, rounded outward to BITS bits. Standard library only.

A number is a pair (m, e). Nothing overflows, underflows or is not a number; what cannot be decided raises UndecidedError.
"""

from functools import lru_cache

BITS = 200

# Terms of a sum whose exponents are further apart than this are not aligned: the smaller one is rounded away, outward.
FAR = 4096

# Exponentials of numbers below this are only bounded from above; of numbers above its negative there is none.
SMALLEST = -1_000_000


class UndecidedError(Exception):
    """More bits would be needed."""


def down(m, e):
    """The greatest number of so many bits that is not above m 2^e."""
    spare = m.bit_length() - BITS
    return (m >> spare, e + spare) if spare > 0 else (m, e)


def up(m, e):
    m, e = down(-m, e)
    return -m, e


def number(x):
    """A float or an integer, exactly."""
    numerator, denominator = x.as_integer_ratio()
    return numerator, 1 - denominator.bit_length()


def sign(x):
    return (x[0] > 0) - (x[0] < 0)


def less(x, y):
    """Whether x < y."""
    if sign(x) != sign(y) or sign(x) == 0:
        return sign(x) < sign(y)
    tops = x[0].bit_length() + x[1], y[0].bit_length() + y[1]
    if tops[0] != tops[1]:
        return (tops[0] < tops[1]) == (sign(x) > 0)
    least = min(x[1], y[1])
    return x[0] << (x[1] - least) < y[0] << (y[1] - least)


def total(x, y, rounded):
    """x + y, rounded down or up."""
    if not x[0] or not y[0]:
        return rounded(*(y if not x[0] else x))
    if x[1] < y[1]:
        x, y = y, x
    if x[1] - y[1] <= FAR or y[0].bit_length() + y[1] > x[1] - FAR:
        return rounded((x[0] << (x[1] - y[1])) + y[0], y[1])
    # y is less than one unit here.
    outward = min(0, sign(y)) if rounded is down else max(0, sign(y))
    return rounded((x[0] << FAR) + outward, x[1] - FAR)


def quotient(x, y, rounded):
    """x / y for y > 0, rounded down or up."""
    room = max(0, BITS + 2 + y[0].bit_length() - x[0].bit_length())
    m = (x[0] << room) // y[0] if rounded is down else -((-x[0] << room) // y[0])
    return rounded(m, x[1] - room - y[1])


@lru_cache
def log_two(bits):
    """ln 2 in units of 2^-bits, off by less than 2 bits units: 2 atanh(1/3), every term rounded down."""
    found, power, k = 0, (2 << bits) // 3, 1
    while power:
        found += power // k
        power, k = power // 9, k + 2
    return found


def exponential(x):
    """Numbers below and above exp(x), for |x| at most -SMALLEST."""
    fixed = BITS + 128
    one = 1 << fixed
    # |x| < 2^20, so that 2^21 times the error of ln 2 is below 2^32 units.
    shift = x[1] + fixed
    value = x[0] << shift if shift >= 0 else x[0] >> -shift
    ln = log_two(fixed)
    k = (2 * value + ln) // (2 * ln)
    rest = value - k * ln
    found, term, i = one, one, 1
    while term not in (0, -1):
        term = term * rest // (i << fixed)
        found, i = found + term, i + 1
    # |rest| < 0.35: each of less than 200 terms is off by a unit and the one before it, and rest by less than 2^32.
    slack = 1 << 40
    return down(found - slack, k - fixed), up(found + slack, k - fixed)


class Interval:
    """All numbers from a to b."""

    __slots__ = ("a", "b")

    def __init__(self, a, b=None):
        self.a, self.b = a, a if b is None else b

    @staticmethod
    def of(x):
        return Interval(number(x))

    @property
    def is_point(self):
        return not less(self.a, self.b)

    def __add__(self, other):
        return Interval(total(self.a, other.a, down), total(self.b, other.b, up))

    def __neg__(self):
        return Interval((-self.b[0], self.b[1]), (-self.a[0], self.a[1]))

    def __sub__(self, other):
        return self + -other

    def times(self, w):
        """The product with a number."""
        ends = [(x[0] * w[0], x[1] + w[1]) for x in (self.a, self.b)]
        low, high = ends if w[0] >= 0 else reversed(ends)
        return Interval(down(*low), up(*high))

    def __mul__(self, other):
        both = self.times(other.a), self.times(other.b)
        return hull(both)

    def __truediv__(self, other):
        """The quotient by something positive."""
        if sign(other.a) <= 0:
            raise UndecidedError
        low = quotient(self.a, other.b if sign(self.a) >= 0 else other.a, down)
        return Interval(low, quotient(self.b, other.a if sign(self.b) >= 0 else other.b, up))

    def positive(self):
        return Interval(*(x if sign(x) > 0 else (0, 0) for x in (self.a, self.b)))

    def exp(self):
        smallest = number(SMALLEST)
        if less((-smallest[0], smallest[1]), self.b):
            raise UndecidedError
        low = exponential(self.a)[0] if less(smallest, self.a) else (0, 0)
        high = exponential(self.b if less(smallest, self.b) else smallest)[1]
        return Interval(low, high)


def hull(intervals):
    """The smallest interval around all."""
    first, *others = intervals
    low, high = first.a, first.b
    for x in others:
        low, high = x.a if less(x.a, low) else low, x.b if less(high, x.b) else high
    return Interval(low, high)


ZERO = Interval((0, 0))
