//! The matrices of a model in the arithmetic that is judged, and long sums over their rows in fixed point.

use super::ball::{Ball, bits, shift};
use super::sum::{Arithmetic, Sum, Term, Totals, rounded, sum};
use crate::model::{Numbers, Tensor};
use crate::number::{Dyadic, Format};

/// Bits of a weight in fixed point: those of its row share an exponent.
const WEIGHT: i32 = 58;
/// Sums over fewer numbers are not worth it.
const LONG: usize = 16;
/// Numbers that are further apart in size than this many binades do not keep 28 bits, four more than those of binary32.
const APART: i32 = 30;

/// More numbers than this stay as the file has them, and are read again wherever they are used.
const MOST_HERE: usize = 1 << 21;

/// A matrix, row by row; a vector is one row.
#[derive(PartialEq)]
pub struct Matrix {
    columns: usize,
    rows: usize,
    entries: Entries,
    /// In binary32, the entries in units of 2^exponent of their row; those of a sparse matrix are found when they are used.
    fixed: Vec<i64>,
    /// Nothing where an entry is no whole number of units, and in other formats.
    exponents: Vec<Option<i32>>,
}

/// The entries in the arithmetic that is judged.
#[derive(PartialEq)]
enum Entries {
    Here(Vec<Dyadic>),
    /// To be rounded; none of them overflows.
    InFile(Tensor, Arithmetic),
}

impl Matrix {
    /// The matrix, rounded to the format that is judged; nothing for exact models and for what overflows.
    pub fn new(numbers: &Numbers, arithmetic: Arithmetic) -> Option<Self> {
        Self::keeping(numbers, arithmetic, MOST_HERE)
    }

    /// The same, where more numbers than `most` stay in the file's bytes.
    pub fn keeping(numbers: &Numbers, arithmetic: Arithmetic, most: usize) -> Option<Self> {
        let Numbers::Floats(tensor) = numbers else { return None };
        let columns = *tensor.shape.last()?;
        let rows = tensor.len() / columns;
        let entries = if tensor.sparse.is_some() || tensor.len() > most {
            let fits = |i: usize| tensor.row(i).all(|(_, w)| arithmetic.round(w).is_some());
            (0..rows).all(fits).then(|| Entries::InFile(tensor.clone(), arithmetic))?
        } else {
            Entries::Here((0..tensor.len()).map(|i| arithmetic.round(tensor.get(i))).collect::<Option<_>>()?)
        };
        let mut matrix = Self { columns, rows, entries, fixed: vec![], exponents: vec![] };
        if is_short(arithmetic) {
            for i in 0..rows {
                let e = matrix.weights(i).map(|(_, w)| w.top() + 1).max().unwrap_or(0) - WEIGHT;
                let whole = matrix.weights(i).all(|(_, w)| unit(w, e).1 == 0);
                if tensor.sparse.is_none() {
                    let row: Vec<i64> = (0..columns).map(|c| unit(matrix.get(i, c), e).0 as i64).collect();
                    matrix.fixed.extend(row);
                }
                matrix.exponents.push(Some(e).filter(|_| whole));
            }
        }
        Some(matrix)
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Entry i, counted row by row.
    pub fn at(&self, i: usize) -> Dyadic {
        match &self.entries {
            Entries::Here(entries) => entries[i],
            Entries::InFile(tensor, arithmetic) => rounded_entry(*arithmetic, tensor.get(i)),
        }
    }

    /// The entry of a row and a column.
    pub fn get(&self, row: usize, column: usize) -> Dyadic {
        self.at(row * self.columns + column)
    }

    /// The entries of a row that are not zero, with their columns.
    pub fn weights(&self, i: usize) -> impl Iterator<Item = (usize, Dyadic)> + Clone + '_ {
        let (here, there) = match &self.entries {
            Entries::Here(entries) => (Some(&entries[i * self.columns..(i + 1) * self.columns]), None),
            Entries::InFile(tensor, arithmetic) => {
                (None, Some(tensor.row(i).map(|(c, w)| (c, rounded_entry(*arithmetic, w)))))
            }
        };
        let here = here.into_iter().flatten().copied().enumerate();
        here.chain(there.into_iter().flatten()).filter(|(_, w)| !w.is_zero())
    }

    /// An entry in units of 2^e, where all of its row are whole numbers of them.
    fn fixed(&self, row: usize, column: usize, e: i32) -> i64 {
        let here = self.fixed.get(row * self.columns + column);
        here.copied().unwrap_or_else(|| unit(self.get(row, column), e).0 as i64)
    }

    /// The sum over a row of weight times number, and of other terms, as a program computes it: by Rule 8 where the numbers and the row
    /// are in fixed point, else by Rule 1 alone, with `terms`.
    pub fn sum<T: Iterator<Item = Term>>(
        &self,
        arithmetic: Arithmetic,
        i: usize,
        (x, shared): (Option<&Fixed>, Ball),
        terms: impl Fn() -> T,
        others: &[Term],
    ) -> Option<Sum> {
        let (Some(x), Some(e)) = (x, self.exponents.get(i).copied().flatten()) else {
            return sum(arithmetic, terms().chain(others.iter().copied()));
        };
        let n = x.numbers.len();
        let mut all = Totals { e: e + x.e, n, inexact: n, ..Totals::default() };
        for &(c, m, r, reach) in &x.numbers {
            let w = self.fixed(i, c, e);
            let size = u128::from(w.unsigned_abs());
            all.m += i128::from(w) * i128::from(m);
            all.r += size * u128::from(r);
            all.products += size * u128::from(reach);
        }
        let by = shared.e - all.e;
        let shared = match shared.is_zero() {
            true => 0,
            false if by > 60 => all.products,
            false => all.products.min(shift(0, shared.reach(), by).1),
        };
        let half = |s: i128| ((all.products + all.r + shared).cast_signed() + s).max(0).unsigned_abs() / 2 + 1;
        (all.positive, all.negative) = (half(all.m), half(-all.m));
        rounded(arithmetic, &all.and(others, Format::F32), others)
    }
}

/// Numbers of a token, of which most are not known exactly, in fixed point: they share an exponent.
///
/// **Rule 8.** With weights w = W 2^f and numbers x = (m +- r) 2^e, whole ones (m +- R) 2^e, the sum S of w x is within sum |W| r of
/// sum W m, in units of 2^(e+f), but for what the numbers share. The sizes of the terms add up to at most A = sum |W| (|m| + R), so that
/// the positive ones add up to at most (A + S) / 2. What is shared adds no more to S than `shared`, and no more than A. Rule 1 holds
/// with every term taken for one that is not known exactly.
pub struct Fixed {
    /// Column, midpoint, radius, and midpoint and radius with what is shared, of numbers that are not zero.
    numbers: Vec<(usize, i64, u64, u64)>,
    e: i32,
}

impl Fixed {
    /// Takes (column, own, whole), as [`Term::weighted_apart`] does. Nothing where the rule for single terms is sharper: where the
    /// numbers are few, of many sizes, or many are known exactly; and for other formats than binary32.
    pub fn new(arithmetic: Arithmetic, numbers: impl Iterator<Item = (usize, Ball, Ball)>) -> Option<Self> {
        let numbers: Vec<_> = numbers.filter(|(.., whole)| !whole.is_zero()).collect();
        let inexact = numbers.iter().filter(|(.., whole)| whole.r > 0).count();
        let tops = || numbers.iter().map(|(.., whole)| whole.top());
        let (top, least) = (tops().max()?, tops().min()?);
        if !is_short(arithmetic) || inexact < LONG || 2 * inexact < numbers.len() || top - least > APART {
            return None;
        }
        let e = top - (121 - WEIGHT - bits(numbers.len() as u128)).min(WEIGHT);
        let fixed = |(c, own, whole): (usize, Ball, Ball)| {
            let (m, r) = shift(own.m.into(), own.r.into(), own.e - e);
            let (_, far) = shift(own.m.into(), whole.r.into(), own.e - e);
            (c, m as i64, r as u64, m.unsigned_abs() as u64 + far as u64)
        };
        Some(Self { numbers: numbers.into_iter().map(fixed).collect(), e })
    }
}

/// Whether sums are evaluated in fixed point.
fn is_short(arithmetic: Arithmetic) -> bool {
    matches!(arithmetic, Arithmetic::Float { format: Format::F32, .. })
}

/// A weight in units of 2^e, at most 2^58 of them, and 0 where it is a whole number of them.
fn unit(w: Dyadic, e: i32) -> (i128, u128) {
    shift(w.m.into(), 0, (w.e - e).min(WEIGHT))
}

/// An entry that was rounded before, and did not overflow.
fn rounded_entry(arithmetic: Arithmetic, w: Dyadic) -> Dyadic {
    arithmetic.round(w).expect("no entry overflows")
}

impl Arithmetic {
    /// A number as a program of this arithmetic holds it; nothing where it overflows.
    pub fn round(self, x: Dyadic) -> Option<Dyadic> {
        match self {
            Self::Real => Some(x),
            Self::Float { format, .. } => x.nearest(format),
        }
    }

    /// A sum of two numbers as a program computes it; nothing where it overflows, or is too long to be kept exactly.
    pub fn add(self, x: Dyadic, y: Dyadic) -> Option<Dyadic> {
        match self {
            Self::Real => x.plus_exactly(y),
            Self::Float { format, .. } => x.plus(y, format),
        }
    }
}
