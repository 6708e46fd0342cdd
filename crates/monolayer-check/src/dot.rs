//! Dot products in any order of summation.
//!
//! A program computes sum of `w_i` `x_i` (+ bias) with one rounding per product (none if fused) and one per addition, along
//! any binary tree. Terms that are zero cost nothing.

use crate::rounding::{Rounding, first_place, last_bit, power_of_two, up};

/// Beyond this many inexact terms, their partial sums are bounded without sorting them.
const MANY: usize = 16;

/// How much care a bound takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Care {
    /// `gamma_k` times the sum of absolute terms.
    Coarse,
    /// Exact where exactness is provable, else the worst tree of partial sums.
    Fine,
}

/// A dot product: midpoint, and how far rounding may take the program (on its own inputs) and the midpoint apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dot {
    /// The value computed in f64 from the midpoints.
    pub mid: f64,
    /// The rounding error of both.
    pub round: f64,
    /// The effect of the inputs' radii.
    pub spread: f64,
    /// Upper bound on the sum of absolute values of all terms.
    pub size: f64,
}

impl Dot {
    /// The whole radius.
    pub fn radius(&self) -> f64 {
        up(self.round + self.spread)
    }
}

/// Sum of `w_i` `x_i` + bias for exact weights and inputs `x_i` within `radius_i` (an empty slice: exact inputs).
pub fn dot(w: &[f64], x: &[f64], radius: &[f64], bias: f64, rounding: &Rounding, care: Care) -> Dot {
    if care == Care::Coarse {
        return coarse(w, x, radius, bias, rounding);
    }
    let mut sum = Sum::new(bias, rounding, care);
    for (i, (&w, &x)) in w.iter().zip(x).enumerate() {
        let r = if radius.is_empty() { 0.0 } else { radius[i] };
        sum.add(w, x, r);
    }
    sum.finish()
}

/// The coarse bound in eight lanes.
fn coarse(w: &[f64], x: &[f64], radius: &[f64], bias: f64, rounding: &Rounding) -> Dot {
    const LANES: usize = 8;
    let (mut mid, mut size, mut spread, mut terms) = ([0.0; LANES], [0.0; LANES], [0.0; LANES], [0.0; LANES]);
    let mut lane = |l: usize, w: f64, x: f64, r: f64| {
        mid[l] += w * x;
        size[l] += w.abs() * (x.abs() + r);
        spread[l] += w.abs() * r;
        terms[l] += f64::from(u8::from(w != 0.0));
    };
    let exact = [0.0; LANES];
    let whole = w.len() / LANES * LANES;
    for at in (0..whole).step_by(LANES) {
        let (w, x) = (&w[at..at + LANES], &x[at..at + LANES]);
        let r = if radius.is_empty() { &exact[..] } else { &radius[at..at + LANES] };
        for l in 0..LANES {
            lane(l, w[l], x[l], r[l]);
        }
    }
    for at in whole..w.len() {
        lane(0, w[at], x[at], radius.get(at).copied().unwrap_or(0.0));
    }
    let spread = if radius.iter().all(|r| *r == 0.0) { 0.0 } else { spread.iter().sum() };
    Dot::coarse(mid.iter().sum(), size.iter().sum(), spread, terms.iter().sum::<f64>() as usize, bias, rounding)
}

impl Dot {
    /// The coarse bound from sum of `w_i` `x_i`, of |`w_i`| (|`x_i`| + `r_i`), of |`w_i`| `r_i`, and the number of terms.
    pub fn coarse(mid: f64, size: f64, spread: f64, terms: usize, bias: f64, rounding: &Rounding) -> Self {
        let mut sum = Sum::new(bias, rounding, Care::Coarse);
        sum.products = terms;
        sum.mid += mid;
        sum.size += size;
        if spread != 0.0 {
            sum.spread = spread + terms as f64 * f64::MIN_POSITIVE;
        }
        sum.finish()
    }
}

/// A sum under construction; its terms are kept for the fine bound.
pub struct Sum<'a> {
    mid: f64,
    size: f64,
    spread: f64,
    products: usize,
    terms: Vec<Term>,
    bias: f64,
    rounding: &'a Rounding,
    care: Care,
}

/// One product.
struct Term {
    value: f64,
    radius: f64,
    /// The exponent of the last bit of an exact product of exact factors.
    grid: Option<i32>,
    /// The program's product is exact whatever its inexact factor is.
    exact: bool,
}

impl<'a> Sum<'a> {
    /// A sum that holds only its bias.
    pub fn new(bias: f64, rounding: &'a Rounding, care: Care) -> Self {
        let terms = Vec::with_capacity(if care == Care::Fine { 64 } else { 0 });
        Self { mid: bias, size: bias.abs(), spread: 0.0, products: 0, terms, bias, rounding, care }
    }

    /// Adds w x, where w is exact and x has radius r.
    pub fn add(&mut self, w: f64, x: f64, r: f64) {
        if w == 0.0 || (x == 0.0 && r == 0.0) {
            return;
        }
        let radius = if r > 0.0 { w.abs() * r + f64::MIN_POSITIVE } else { 0.0 };
        self.add_product(w, x, radius);
        if let (Care::Fine, Some(term)) = (self.care, self.terms.last_mut()) {
            // A power of two times a number that stays normal only moves the exponent.
            let normal = w.abs() * (x.abs() - r) > self.rounding.tiny * 1e16;
            term.exact |= r > 0.0 && normal && w.abs() == first_place(w.abs());
        }
    }

    /// Adds a product of two factors whose errors move it by at most `radius` (0: both are exact).
    pub fn add_product(&mut self, a: f64, b: f64, radius: f64) {
        if radius == 0.0 && (a == 0.0 || b == 0.0) {
            return;
        }
        let value = a * b;
        self.products += 1;
        self.mid += value;
        self.size += value.abs() + radius;
        self.spread += radius;
        if self.care == Care::Fine {
            let grid = if radius > 0.0 { None } else { Some(last_bit(a) + last_bit(b)) };
            let exact = grid.is_some_and(|grid| {
                grid >= self.rounding.least && value.abs() < power_of_two(self.rounding.bits + grid)
            });
            self.terms.push(Term { value, radius, grid, exact });
        }
    }

    /// The midpoint and the bounds.
    pub fn finish(self) -> Dot {
        let tiny = self.products as f64 * self.rounding.tiny;
        let size = up(self.size + tiny);
        let spread = up(self.spread);
        let addends = self.products + usize::from(self.bias != 0.0);
        let coarse = if self.products == 0 { 0.0 } else { up(self.rounding.gamma(addends) * size + tiny) };
        let round = match self.care {
            Care::Coarse => coarse,
            Care::Fine => self.fine(size).min(coarse),
        };
        if up(size + round) <= self.rounding.largest {
            Dot { mid: self.mid, round, spread, size }
        } else {
            Dot { mid: 0.0, round: f64::INFINITY, spread: f64::INFINITY, size: f64::INFINITY }
        }
    }

    fn fine(&self, size: f64) -> f64 {
        if self.is_exact(size) {
            return 0.0;
        }
        let mut products = 0.0;
        for term in self.terms.iter().filter(|term| !term.exact) {
            products += self.rounding.unit * first_place(up(term.value.abs() + term.radius)) + self.rounding.tiny;
        }
        if self.terms.len() > MANY && self.terms.iter().all(|term| term.grid.is_none()) {
            return up(products + self.unsorted(products));
        }
        let mut partial = Partial::default();
        for term in &self.terms {
            partial.push(term.value, term.radius);
        }
        if self.bias != 0.0 {
            partial.push(self.bias, 0.0);
        }
        let (chained, greatest) = partial.chain(products, self.rounding.unit, first_place);
        up(products + chained.min(self.binades(up(greatest + products + chained))))
    }

    /// The rounding errors of additions from a simpler bound on partial sums: one of j terms is at most j times the largest
    /// term, and at most the sum of all positive or of all negative parts. Sorting many dense terms gains little more.
    fn unsorted(&self, products: f64) -> f64 {
        let (mut above, mut below, mut largest) = (self.bias.max(0.0), (-self.bias).max(0.0), self.bias.abs());
        for term in &self.terms {
            above += (term.value + term.radius).max(0.0);
            below += (term.radius - term.value).max(0.0);
            largest = largest.max(term.value.abs() + term.radius);
        }
        let (all, largest) = (up(above.max(below)), up(largest));
        let addends = self.terms.len() + usize::from(self.bias != 0.0);
        worst((2..=addends).map(|j| all.min(j as f64 * largest)), products, self.rounding.unit, first_place)
    }

    /// The rounding errors of additions when most terms lie on a coarse grid.
    ///
    /// No partial sum exceeds `greatest`, so a term that is a multiple of the last place there never makes a sum round. Follow
    /// a partial sum from each of the m other terms: once it was rounded it is a multiple of the last place of its size,
    /// and only a sum in a higher binade rounds it again. The errors of one chain are u 2^k for different k, together at
    /// most 2 u times the first place of `greatest`. Where two chains meet, the coarser one ends.
    fn binades(&self, greatest: f64) -> f64 {
        let first = first_place(greatest);
        let last = last_bit(first) - self.rounding.bits + 1;
        let fine = self.terms.iter().filter(|term| term.grid.is_none_or(|grid| grid < last)).count();
        let fine = fine + usize::from(self.bias != 0.0 && last_bit(self.bias) < last);
        up(2.0 * fine as f64 * self.rounding.unit * first)
    }

    /// Whether every product and every partial sum, in any order, is exactly representable: all terms are multiples of
    /// one power of two, and their absolute values sum to no more than `bits` bits above it.
    fn is_exact(&self, size: f64) -> bool {
        let mut least = if self.bias == 0.0 { i32::MAX } else { last_bit(self.bias) };
        for term in &self.terms {
            match term.grid {
                Some(grid) => least = least.min(grid),
                None => return false,
            }
        }
        least == i32::MAX || (least >= self.rounding.least && size <= power_of_two(self.rounding.bits + least))
    }
}

/// The terms of a sum, for bounds on its partial sums.
#[derive(Default)]
pub struct Partial {
    positive: Vec<f64>,
    negative: Vec<f64>,
}

impl Partial {
    /// A term within `radius` of `value`.
    pub fn push(&mut self, value: f64, radius: f64) {
        self.positive.push(up((value + radius).max(0.0)));
        self.negative.push(up((radius - value).max(0.0)));
    }

    /// The rounding errors of additions along the worst tree, and a bound on all exact partial sums.
    ///
    /// A partial sum of j terms is at most `P_j`, the larger of the j greatest positive and the j greatest negative parts.
    /// A tree with k leaves has, for every i, at most i nodes of more than k - i leaves, so the chain 2, 3, ..., k is the
    /// worst: the error is at most the sum over j of u times `place` of `P_j` plus the errors so far, where `place` is the
    /// unit in the first place, or the number itself where the scale of the sum is not known.
    pub fn chain(mut self, products: f64, unit: f64, place: fn(f64) -> f64) -> (f64, f64) {
        self.positive.sort_unstable_by(|a, b| b.total_cmp(a));
        self.negative.sort_unstable_by(|a, b| b.total_cmp(a));
        let (mut above, mut below) = (0.0_f64, 0.0_f64);
        let partial = self.positive.iter().zip(&self.negative).map(|(p, n)| {
            above += p;
            below += n;
            above.max(below)
        });
        let error = worst(partial.skip(1), products, unit, place);
        (error, up(above.max(below)))
    }
}

/// The sum over j = 2, 3, ... of u times `place` of `P_j` plus the errors so far, `products` among them.
fn worst(partial: impl Iterator<Item = f64>, products: f64, unit: f64, place: fn(f64) -> f64) -> f64 {
    up(partial.fold(0.0, |error, p| error + unit * place(up(p + products + error))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rounding::Precision;

    const F32: fn() -> Rounding = || Rounding::new(Precision::F32, 4.0);

    #[test]
    fn integers_are_exact_in_any_order() {
        let w = [3.0, -5.0, 7.0, 1.0];
        let x = [1.0, 1.0, -1.0, 0.25];
        let result = dot(&w, &x, &[], -2.5, &F32(), Care::Fine);
        assert_eq!((result.mid, result.round), (-11.25, 0.0));
    }

    #[test]
    fn one_inexact_term_among_gates_costs_few_roundings() {
        // Ninety-six gates of a sixteenth, one reader of g, a bias that closes the gate.
        let mut w = vec![0.0625; 96];
        w.push(1.0);
        let mut x = vec![1.0; 96];
        x.push(f64::from(0.337_f32));
        let mut radius = vec![0.0; 96];
        radius.push(1e-6);
        let result = dot(&w, &x, &radius, f64::from(-6.2_f32), &F32(), Care::Fine);
        assert!(result.round <= 2.01 * 4.0 * f64::from(f32::EPSILON) / 2.0, "{}", result.round);
    }

    #[test]
    fn a_sum_that_can_overflow_has_no_bound() {
        let big = f64::from(f32::MAX) * 0.75;
        let result = dot(&[1.0, 1.0, -1.0], &[big, big, big], &[], 0.0, &F32(), Care::Fine);
        assert_eq!(result.round, f64::INFINITY);
    }

    #[test]
    fn random_orders_stay_within_the_bound() {
        // Half of the sums hold mostly multiples of a sixteenth, so that the bound by binades is the smaller one.
        let mut state = 1_u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            f64::from(((state >> 33) as f32 / 1e9 - 1.0) * if state.is_multiple_of(8) { 64.0 } else { 1.0 })
        };
        for _ in 0..2000 {
            let n = 9;
            let w: Vec<f64> = (0..n).map(|_| f64::from(random() as f32)).collect();
            let mut x: Vec<f64> = (0..n).map(|_| f64::from(random() as f32)).collect();
            let mut w = w;
            if random() > 0.0 {
                for i in 1..n {
                    (w[i], x[i]) = ((w[i] * 16.0).round() / 16.0, x[i].signum());
                }
            }
            let fine = dot(&w, &x, &[], 0.0, &F32(), Care::Fine);
            let coarse = dot(&w, &x, &[], 0.0, &F32(), Care::Coarse);
            assert!(fine.round <= coarse.round);
            let mut terms: Vec<f32> = w.iter().zip(&x).map(|(&w, &x)| w as f32 * x as f32).collect();
            while terms.len() > 1 {
                let i = (random().abs() * 1e6) as usize % (terms.len() - 1);
                terms[i] += terms.pop().unwrap();
            }
            assert!((f64::from(terms[0]) - fine.mid).abs() <= fine.round);
        }
    }
}
