//! The same graph in real arithmetic: big floats with a bound on their error.

use dashu_float::FBig;
use dashu_float::round::mode::HalfEven;

use super::graph::{Factor, Graph, Operation, Term};

pub type Big = FBig<HalfEven, 2>;

/// Bits of a number that is not exact.
pub const BITS: usize = 2200;
/// The exponential of less than this is taken as 0, with an error of that size.
const LEAST: f64 = -40_000.0;

/// A number, and log2 of a bound on its error (minus infinity: exact).
#[derive(Debug, Clone)]
pub struct Real {
    pub mid: Big,
    pub error: f64,
}

pub fn big(x: f64) -> Big {
    Big::try_from(x).expect("finite").with_precision(0).value()
}

/// log2 of the size, from above.
pub fn size(x: &Big) -> f64 {
    if *x == Big::ZERO {
        return f64::NEG_INFINITY;
    }
    let repr = x.repr();
    repr.exponent() as f64 + repr.digits_ub() as f64
}

/// log2 of the sum of two numbers given by their log2, from above.
fn plus(a: f64, b: f64) -> f64 {
    let (most, least) = if a > b { (a, b) } else { (b, a) };
    if least == f64::NEG_INFINITY {
        return most;
    }
    most + (1.0 + (least - most).exp2()).log2() + 1e-9
}

impl Real {
    pub fn of(x: f64) -> Self {
        Self { mid: big(x), error: f64::NEG_INFINITY }
    }

    /// Cut to so many bits where it is not exact anyway, or has become too long.
    fn cut(self) -> Self {
        let long = self.mid.repr().digits_ub() > 20_000;
        if self.error == f64::NEG_INFINITY && !long {
            return self;
        }
        let cut = self.mid.clone().with_precision(BITS).value();
        let error = plus(self.error, size(&cut) - BITS as f64);
        Self { mid: cut.with_precision(0).value(), error }
    }

    pub fn add(&self, other: &Self) -> Self {
        Self { mid: &self.mid + &other.mid, error: plus(self.error, other.error) }.cut()
    }

    pub fn minus(&self, other: &Self) -> Self {
        Self { mid: &self.mid - &other.mid, error: plus(self.error, other.error) }.cut()
    }

    pub fn times(&self, other: &Self) -> Self {
        let error = plus(plus(size(&self.mid) + other.error, size(&other.mid) + self.error), self.error + other.error);
        Self { mid: &self.mid * &other.mid, error: if error.is_nan() { f64::NEG_INFINITY } else { error } }.cut()
    }

    fn over(&self, other: &Self) -> Self {
        let short = |x: &Big| x.clone().with_precision(BITS).value();
        let mid = short(&self.mid) / short(&other.mid);
        // |a/b - a'/b'| <= (ea + |a/b| eb) / (|b| - eb); totals of weights are at least about 1.
        let error = plus(self.error, size(&mid) + other.error) - (size(&other.mid) - 2.0);
        let error = plus(error, size(&mid) + 4.0 - BITS as f64);
        Self { mid: mid.with_precision(0).value(), error }
    }

    fn exp(&self) -> Self {
        if self.mid == Big::ZERO && self.error == f64::NEG_INFINITY {
            return Self::of(1.0);
        }
        // An error of this size says nothing; the weight is somewhere between 0 and 1.
        if self.error > -4.0 {
            return Self { mid: big(0.5), error: 0.0 };
        }
        if self.mid < big(LEAST) {
            return Self { mid: big(0.0), error: LEAST };
        }
        let mid = self.mid.clone().with_precision(BITS).value().exp();
        let error = plus(size(&mid) + self.error + 1.0, size(&mid) + 8.0 + LEAST.abs().log2() - BITS as f64);
        Self { mid: mid.with_precision(0).value(), error }
    }

    /// Whether it is certainly above 0, or certainly below, or certainly 0; nothing where that is open.
    pub fn sign(&self) -> Option<i32> {
        if self.error == f64::NEG_INFINITY {
            return Some(if self.mid == Big::ZERO { 0 } else { self.positive() });
        }
        // The size is from above: the number itself is at least half of it.
        (size(&self.mid) - 2.0 > self.error).then(|| self.positive())
    }

    fn positive(&self) -> i32 {
        if self.mid > Big::ZERO { 1 } else { -1 }
    }
}

/// All quantities in real arithmetic. Where hardmax or ReLU cannot be decided, nothing.
pub fn run(graph: &Graph) -> Option<Vec<Real>> {
    let mut values: Vec<Real> = Vec::with_capacity(graph.nodes.len());
    for node in &graph.nodes {
        let value = match &node.operation {
            Operation::Sum(terms) => terms.iter().fold(Real::of(0.0), |sum, term| sum.add(&self::term(term, &values))),
            &Operation::Relu(x) => match values[x].sign() {
                Some(1) => values[x].clone(),
                Some(_) => Real::of(0.0),
                None => Real { mid: big(0.0), error: plus(size(&values[x].mid), values[x].error) },
            },
            Operation::Max(all) => {
                let mut most = values[all[0]].clone();
                for &i in &all[1..] {
                    if values[i].mid > most.mid {
                        most = values[i].clone();
                    }
                }
                most
            }
            &Operation::Exp(a, b) => values[a].minus(&values[b]).exp(),
            // Numbers computed alike are equal; others that agree to all bits kept are not met.
            &Operation::Equal(a, b) if values[a].mid == values[b].mid => Real::of(1.0),
            &Operation::Equal(a, b) => values[a].minus(&values[b]).sign().map(|_| Real::of(0.0))?,
            &Operation::Quotient(a, b) => values[a].over(&values[b]),
            Operation::Mean { exps, values: column, total, .. } => {
                let sum =
                    exps.iter().zip(column).fold(Real::of(0.0), |sum, (&e, &v)| sum.add(&values[e].times(&values[v])));
                if values[*total].mid == big(1.0) && values[*total].error == f64::NEG_INFINITY {
                    sum
                } else {
                    sum.over(&values[*total])
                }
            }
        };
        values.push(value);
    }
    Some(values)
}

fn term(term: &Term, values: &[Real]) -> Real {
    let value = |f: Factor| match f {
        Factor::Number(x) => Real::of(x),
        Factor::Node(i) => values[i].clone(),
    };
    match *term {
        Term::Product(a, b) => value(a).times(&value(b)),
        Term::Plain(a) => value(a),
    }
}

/// The label that certainly wins, if one does.
pub fn label(scores: &[&Real]) -> Option<usize> {
    let mut best = 0;
    for l in 1..scores.len() {
        if scores[l].minus(scores[best]).sign()? > 0 {
            best = l;
        }
    }
    Some(best)
}

/// Whether a number is within a tolerance of another; nothing where that is open.
pub fn near(x: &Real, y: f64, tolerance: f64) -> Option<bool> {
    let difference = x.minus(&Real::of(y));
    let size = if difference.mid < Big::ZERO { Real::of(0.0).minus(&difference) } else { difference };
    Real::of(tolerance).minus(&size).sign().map(|s| s >= 0)
}

/// Whether a number certainly lies outside of an interval between two multiples of 2^e.
pub fn apart(x: &Real, [low, high]: [i128; 2], e: i32) -> bool {
    let end = |m: i128| Real { mid: Big::from_parts(m.into(), e as isize), error: f64::NEG_INFINITY };
    x.minus(&end(low)).sign() == Some(-1) || end(high).minus(x).sign() == Some(-1)
}
