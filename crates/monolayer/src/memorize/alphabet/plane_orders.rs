//! The fewest knots for contexts in a plane of counts, over all keys and queries, by exhaustion.
//!
//! Let the counts that a query sees be `x_1 u + x_2 v + x_3 w` for fixed counts u, v, w. Then its id is `g = N.x / D.x` with two vectors N
//! and D in R^3, and `D.x > 0`. Of two contexts x and y the id of x is larger exactly if `(N.x)(D.y) - (N.y)(D.x) > 0`, which is the
//! triple product `o.(x * y)` with `o = N * D`, the cross product. So the order of all ids depends on one vector o, the point that the
//! plane is looked at from, and changes only where o crosses a plane `o.(x * y) = 0`. Such planes are finitely many; between
//! them o has finitely many cells, and each of them touches a line where two planes meet. All
//! cells around all such lines are looked at, in integers. Where D is positive for all contexts, they are in less than half a turn
//! around o; cells in which they are not belong to no keys and queries. On a plane itself two ids are equal: their labels must
//! be equal, too, and then a cell next to it has the same labels in a row.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashSet};

use crate::memorize::gated::knots::fewest_knots;

/// A context as a combination of three counts, and its label.
pub type PlanePoint = ([i64; 3], u32);

/// The fewest knots that points with labels below `labels` need in any order that keys and a query give them, if that is more than
/// `more_than`. No two points are multiples of each other, and coordinates are below 2^10. `budget` counts down the orders looked
/// at; where it is used up, nothing is found.
pub fn least_knots(points: &[PlanePoint], labels: usize, more_than: usize, budget: &mut usize) -> Option<usize> {
    let mut planes: BTreeSet<[i64; 3]> = BTreeSet::new();
    for (i, (x, _)) in points.iter().enumerate() {
        planes.extend(points[..i].iter().map(|(y, _)| direction(cross(*x, *y))));
    }
    let planes: Vec<[i64; 3]> = planes.into_iter().collect();
    let mut fewest = usize::MAX;
    // Whether to go on.
    let mut try_out = |o: [i64; 3], aside: [i64; 3]| {
        *budget = budget.saturating_sub(1);
        if let Some(row) = in_order(points, o, aside) {
            fewest = fewest.min(fewest_knots(&row, labels));
        }
        fewest > more_than && *budget > 0
    };
    let mut lines: HashSet<[i64; 3]> = HashSet::new();
    for (i, m) in planes.iter().enumerate() {
        for other in &planes[..i] {
            let o = direction(cross(*m, *other));
            if lines.insert(o) && !around(o, &planes).into_iter().all(|aside| try_out(o, aside)) {
                return None;
            }
        }
    }
    (fewest < usize::MAX).then_some(fewest)
}

/// A direction in each cell around a line.
fn around(o: [i64; 3], planes: &[[i64; 3]]) -> Vec<[i64; 3]> {
    let mut rays: Vec<[i64; 3]> = Vec::new();
    for &m in planes.iter().filter(|&&m| dot(o, m) == 0) {
        let ray = cross(o, m);
        rays.extend([ray, ray.map(|x| -x)]);
    }
    // By their angle around the line, from the first of them.
    let zero = rays[0];
    let half = |ray: [i64; 3]| {
        let side = dot(o, cross(zero, ray));
        side < 0 || (side == 0 && dot(zero, ray) < 0)
    };
    rays.sort_by(|&a, &b| half(a).cmp(&half(b)).then_with(|| 0.cmp(&dot(o, cross(a, b)))));
    let next = |i: usize| rays[(i + 1) % rays.len()];
    (0..rays.len())
        .map(|i| {
            // Two planes meet here at least, so that neighboring rays are less than half a turn apart.
            direction_of_ray([0, 1, 2].map(|c| rays[i][c] + next(i)[c]))
        })
        .collect()
}

/// The labels in the order of ids, without repetitions, as seen from `o` and a little aside; `None` if no keys and query do this.
fn in_order(points: &[PlanePoint], o: [i64; 3], aside: [i64; 3]) -> Option<Vec<u32>> {
    let compare = |x: &[i64; 3], y: &[i64; 3]| {
        let across = cross(*x, *y);
        dot(o, across).cmp(&0).then_with(|| dot(aside, across).cmp(&0))
    };
    let is_first = |x: &[i64; 3]| points.iter().all(|(y, _)| compare(x, y) != Ordering::Less);
    points.iter().find(|(x, _)| is_first(x))?;
    let mut sorted: Vec<&PlanePoint> = points.iter().collect();
    sorted.sort_by(|a, b| compare(&b.0, &a.0));
    let mut row: Vec<u32> = sorted.iter().map(|(_, label)| *label).collect();
    row.dedup();
    Some(row)
}

fn cross(x: [i64; 3], y: [i64; 3]) -> [i64; 3] {
    [x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]]
}

fn dot(x: [i64; 3], y: [i64; 3]) -> i64 {
    x[0] * y[0] + x[1] * y[1] + x[2] * y[2]
}

/// A vector divided by its greatest common divisor.
fn direction_of_ray(x: [i64; 3]) -> [i64; 3] {
    let gcd = x.iter().fold(0, |mut a: i64, &b| {
        let mut b = b.abs();
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    });
    x.map(|c| c / gcd.max(1))
}

/// The same of a vector that may be turned round: its first entry that is not 0 is positive.
fn direction(x: [i64; 3]) -> [i64; 3] {
    let reduced = direction_of_ray(x);
    let turned = reduced.iter().find(|&&c| c != 0).is_some_and(|&c| c < 0);
    if turned { reduced.map(|c| -c) } else { reduced }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_square_of_turns_needs_a_knot() {
        // No threshold of a quotient of linear functions separates the diagonals of a square.
        let square = [([1, 0, 0], 0), ([1, 1, 1], 0), ([1, 1, 0], 1), ([1, 0, 1], 1)];
        assert_eq!(least_knots(&square, 2, 0, &mut 1000), Some(1));
        let separable = [([1, 0, 0], 0), ([1, 1, 1], 1), ([1, 1, 0], 1), ([1, 0, 1], 1)];
        assert_eq!(least_knots(&separable, 2, 0, &mut 1000), None);
        // Nothing is said where the budget is used up.
        assert_eq!(least_knots(&square, 2, 0, &mut 1), None);
    }

    proptest! {
        /// Whatever the keys and the query, the labels in the order of ids need as many knots at least.
        #[test]
        fn no_keys_need_fewer(
            labels in prop::collection::vec(0_u32..3, 15),
            keys in prop::array::uniform3(-4.0..4.0_f64),
            query in -2.0..2.0_f64,
        ) {
            // Two keys up to four times in all, and a start token.
            let counts = (0..5_i64).flat_map(|a| (0..5 - a).map(move |b| [1, a, b]));
            let points: Vec<PlanePoint> = counts.zip(labels).collect();
            let mut budget = usize::MAX;
            let least = least_knots(&points, 3, 0, &mut budget).unwrap_or(0);
            let id = |x: &[i64; 3]| {
                let weight = |i: usize| x[i] as f64 * (query * keys[i]).exp();
                (0..3).map(|i| weight(i) * keys[i]).sum::<f64>() / (0..3).map(weight).sum::<f64>()
            };
            let mut ids: Vec<(f64, u32)> = points.iter().map(|(x, label)| (id(x), *label)).collect();
            ids.sort_by(|a, b| a.0.total_cmp(&b.0));
            let mut row: Vec<u32> = ids.into_iter().map(|(_, label)| label).collect();
            row.dedup();
            prop_assert!(least <= fewest_knots(&row, 3));
        }
    }
}
