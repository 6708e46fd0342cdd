//! Definitions 1 and 2.

use monolayer::Result;
use monolayer::arithmetic::{Ball, Interval, Number as _};
use monolayer::data::separation::separation;
use monolayer::paper::boltzmann::difference;

use super::support::{rng, vectors};
use super::{Claim, Context, Finding};

pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "definition-1",
        place: "Definition 1",
        statement: "different tokens are (r_min, r_max, epsilon)-separated for constants beyond their norms and distances",
        run: "the tightest constants of random vocabularies against all norms and all distances, enclosed",
        code: ("crates/monolayer/src/data/separation.rs", "separation"),
        mutation: "epsilon is the largest distance",
        find: definition_1,
    },
    Claim {
        id: "definition-2",
        place: "Definition 2",
        statement: "what attention sees of a sequence is the set of its tokens",
        run: "all multisets of up to five of three numbers, in pairs: are their Boltzmann values equal?",
        code: ("crates/monolayer/src/data/context.rs", "Contexts"),
        mutation: "the multiset is not normalized",
        find: definition_2,
    },
];

fn definition_1(context: &Context) -> Result<Finding> {
    let (d, size) = (5, 60);
    let (mut checked, mut violated, mut slack) = (0, 0, 0.0_f64);
    for seed in 0..context.effort(100, 1000) as u64 {
        let points = vectors(&mut rng(seed), size, d);
        let rows: Vec<&[f64]> = points.chunks_exact(d).collect();
        let length = |x: &[Interval]| x.iter().fold(Interval::point(0.0), |sum, x| sum + x.square()).sqrt();
        let norms: Vec<Interval> =
            rows.iter().map(|x| length(&x.iter().map(|&x| Interval::point(x)).collect::<Vec<_>>())).collect();
        let distance = |x: &[f64], y: &[f64]| {
            length(&x.iter().zip(y).map(|(&x, &y)| Interval::point(x) - Interval::point(y)).collect::<Vec<_>>())
        };
        let distances: Vec<Interval> =
            (0..size).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| distance(rows[i], rows[j])).collect();
        let found = separation(d, &points);
        let largest = distances.iter().map(|x| x.hi()).fold(0.0, f64::max);
        let epsilon = context.mutate(found.epsilon, largest);
        // Beyond by more than the constants' own rounding.
        let (below, above) = (1.0 - 1e-12, 1.0 + 1e-12);
        let outside = |x: &&Interval| x.lo() < found.r_min * below || x.hi() > found.r_max * above;
        violated += norms.iter().filter(outside).count();
        violated += distances.iter().filter(|x| x.lo() < epsilon * below).count();
        checked += norms.len() + distances.len();
        let smallest = distances.iter().map(|x| x.hi()).fold(f64::INFINITY, f64::min);
        slack = slack.max(smallest / epsilon - 1.0);
    }
    Ok(Finding::printed(violated == 0 && slack < 1e-12)
        .count("norms and distances", checked)
        .count("outside", violated))
}

fn definition_2(context: &Context) -> Result<Finding> {
    // How often 1, 2 and 3 occur; 1 is the query.
    let counts = (0..6_usize.pow(3)).map(|i| [i % 6, i / 6 % 6, i / 36]);
    let counts: Vec<[usize; 3]> = counts.filter(|c| c[0] > 0 && c.iter().sum::<usize>() <= 5).collect();
    let tokens = |c: &[usize; 3]| (0..3).flat_map(|i| vec![i as f64 + 1.0; c[i]]).collect::<Vec<f64>>();
    let set = |c: &[usize; 3]| c.map(|n| n > 0);
    let same_context = |a: &[usize; 3], b: &[usize; 3]| {
        let (m, n) = (a.iter().sum::<usize>(), b.iter().sum::<usize>());
        context.mutate((0..3).all(|i| a[i] * n == b[i] * m), a == b)
    };
    let (mut pairs, mut wrong_as_sets, mut wrong) = (0, 0, 0);
    let mut counterexample = None;
    for (i, a) in counts.iter().enumerate() {
        for b in &counts[..i] {
            let gap = difference(&tokens(a), &tokens(b), 192)?;
            let (equal, apart) = (gap.certainly_equal(&Ball::zero()), gap.abs().is_certainly_positive());
            pairs += 1;
            if set(a) == set(b) && apart {
                wrong_as_sets += 1;
                counterexample.get_or_insert_with(|| format!("{:?} and {:?} have the same set", tokens(b), tokens(a)));
            }
            wrong += usize::from(if same_context(a, b) { !equal } else { !apart });
        }
    }
    Ok(Finding::repaired(wrong_as_sets == 0, wrong == 0)
        .count("pairs", pairs)
        .count("equal sets told apart", wrong_as_sets)
        .count("normalized multisets that do not decide", wrong)
        .counterexample(counterexample.unwrap_or_default()))
}
