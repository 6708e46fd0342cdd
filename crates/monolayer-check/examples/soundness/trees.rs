//! All ways to add a few products, exhaustively: every order, every shape of tree, every choice of fusing, in binary32.

use std::collections::BTreeSet;

/// What all programs can get for the sum of w x over some terms plus a bias: the smallest and the largest number, and whether
/// one of them overflows or gets what is no number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reached {
    pub low: f32,
    pub high: f32,
    pub overflow: bool,
}

/// A sum of a subset is a sum of two parts, or a product fused into the sum of the others. Numbers reached are kept once, by
/// their bits. The bias is a term that cannot be fused (its factor is 1, so that fusing changes nothing).
pub fn reached(terms: &[(f32, f32)], bias: Option<f32>) -> BTreeSet<u32> {
    let n = terms.len() + usize::from(bias.is_some());
    assert!((1..=8).contains(&n), "up to 8 terms");
    let mut of: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); 1 << n];
    for set in 1..1_usize << n {
        let mut found = BTreeSet::new();
        if set.is_power_of_two() {
            let i = set.trailing_zeros() as usize;
            found.insert(terms.get(i).map_or_else(|| bias.unwrap_or(0.0), |(w, x)| w * x).to_bits());
        }
        // Parts that hold the lowest term, so that every split is met once.
        let mut part = (set - 1) & set;
        while part > 0 {
            if part & set & set.wrapping_neg() != 0 {
                for &a in &of[part] {
                    for &b in &of[set ^ part] {
                        found.insert((f32::from_bits(a) + f32::from_bits(b)).to_bits());
                    }
                }
            }
            part = (part - 1) & set;
        }
        for (i, &(w, x)) in terms.iter().enumerate().filter(|(i, _)| set >> i & 1 == 1 && set.count_ones() > 1) {
            for &rest in &of[set ^ (1 << i)] {
                found.insert(w.mul_add(x, f32::from_bits(rest)).to_bits());
            }
        }
        of[set] = found;
    }
    of.pop().unwrap_or_default()
}

/// The ends of what is reached.
pub fn worst_deviation(terms: &[(f32, f32)], bias: Option<f32>) -> Reached {
    let mut out = Reached { low: f32::INFINITY, high: f32::NEG_INFINITY, overflow: false };
    for bits in reached(terms, bias) {
        let x = f32::from_bits(bits);
        if x.is_finite() {
            out.low = out.low.min(x);
            out.high = out.high.max(x);
        } else {
            out.overflow = true;
        }
    }
    out
}
