//! Lemmas 1 to 7, and the two that replace them.

use monolayer::Result;
use monolayer::arithmetic::{Ball, Interval, Number as _};
use monolayer::paper::boltzmann::{Boltzmann, difference};
use monolayer::paper::lemmas::{self, Inequality};
use monolayer::paper::projection;
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use super::support::{ladder, rng, some, vectors};
use super::{Claim, Context, Finding};

pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "lemma-1",
        place: "Lemma 1",
        statement: "boltz keeps a and b with a != b (repaired: different as sets) (log n)^2 e^(-2r) apart",
        run: "permuted vectors; random vectors with gaps just above 2 log n + 3, both sides in balls",
        code: ("crates/monolayer/src/paper/lemmas.rs", "lemma_1"),
        mutation: "e^(-r) in the place of e^(-2r)",
        find: lemma_1,
    },
    Claim {
        id: "lemma-1-lengths",
        place: "Lemma 1, different lengths",
        statement: "the bound of Lemma 1 holds for vectors of different lengths up to n (repaired: Lemma S)",
        run: "{r} and {r, -r} for n = 100",
        code: ("crates/monolayer/src/paper/lemmas.rs", "lemma_s"),
        mutation: "twice the constant of Lemma S",
        find: lemma_1_lengths,
    },
    Claim {
        id: "lemma-2",
        place: "Lemma 2",
        statement: "some unit v keeps N points sqrt(8 / (pi d)) / N^2 of their distances apart",
        run: "directions drawn and verified for random points, all pairs again in intervals",
        code: ("crates/monolayer/src/paper/projection.rs", "lemma_2"),
        mutation: "N in the place of N^2",
        find: lemma_2,
    },
    Claim {
        id: "lemma-3",
        place: "Lemma 3, (29)",
        statement: "u.u' as in (29) puts the scores of different keys more than delta apart for every query",
        run: "random vocabularies, all scores bounded from below",
        code: ("crates/monolayer/src/paper/projection.rs", "lemma_3"),
        mutation: "|V| + 1 in (29) without its power of 4",
        find: lemma_3,
    },
    Claim {
        id: "lemma-4",
        place: "Lemma 4",
        statement: "boltz decreases in a_i below max a - log n - 1",
        run: "the derivative at random points at and beyond the threshold, in balls",
        code: ("crates/monolayer/src/paper/lemmas.rs", "lemma_4"),
        mutation: "a_i at the maximum",
        find: lemma_4,
    },
    Claim {
        id: "lemma-5",
        place: "Lemma 5",
        statement: "boltz is concave in a_i below max a - log n - 3",
        run: "the second derivative at random points at and beyond the threshold, in balls",
        code: ("crates/monolayer/src/paper/lemmas.rs", "lemma_5"),
        mutation: "a_i at the maximum",
        find: lemma_5,
    },
    Claim {
        id: "lemma-6",
        place: "Lemma 6",
        statement: "what follows the largest k + 1 numbers moves boltz less than putting them all at a_(k+1)",
        run: "random vectors with gaps just above 2 log n + 3, every k, in balls",
        code: ("crates/monolayer/src/paper/lemmas.rs", "lemma_6"),
        mutation: "gaps of 0.1",
        find: lemma_6,
    },
    Claim {
        id: "lemma-7",
        place: "Lemma 7",
        statement: "where two sorted vectors first differ decides which boltz is larger, by (log n)^2 e^(-(a_1 - b_(k+1)))",
        run: "random pairs with gaps just above 2 log n + 3, both sides in balls",
        code: ("crates/monolayer/src/paper/lemmas.rs", "lemma_7"),
        mutation: "the sign of the difference is swapped",
        find: lemma_7,
    },
    Claim {
        id: "lemma-s",
        place: "in place of Lemmas 4 to 7",
        statement: "Lemma S: sets of any sizes with gaps of delta are C(delta) e^(-t) apart under boltz",
        run: "random pairs of sets for delta = 1.5, 2 and 3, and the worst family known, in balls",
        code: ("crates/monolayer/src/paper/lemmas.rs", "lemma_s"),
        mutation: "twice the constant",
        find: lemma_s,
    },
    Claim {
        id: "lemma-m",
        place: "in place of Lemmas 4 to 7",
        statement: "Lemma M: different normalized multisets with gaps of 2 log n + 3 are 0.8 t e^(-t) / (p p') apart",
        run: "random pairs of multisets, both sides in balls",
        code: ("crates/monolayer/src/paper/lemmas.rs", "lemma_m"),
        mutation: "1.6 in the place of 0.8",
        find: lemma_m,
    },
];

/// Inequalities tried, and how they fared.
struct Tally {
    tried: usize,
    held: usize,
    /// The smallest left side over its right side, as a binary logarithm.
    log2_ratio: f64,
}

impl Tally {
    fn new() -> Self {
        Self { tried: 0, held: 0, log2_ratio: f64::INFINITY }
    }

    fn add(&mut self, statement: &Inequality) {
        self.tried += 1;
        self.held += usize::from(statement.holds());
        let ratio = statement.left.log2_abs().lo() - statement.right.log2_abs().hi();
        self.log2_ratio = self.log2_ratio.min(ratio);
    }

    fn all(&self) -> bool {
        self.tried > 0 && self.held == self.tried
    }

    fn tell(&self, finding: Finding) -> Finding {
        finding
            .count("inequalities", self.tried)
            .count("that hold", self.held)
            .number("smallest side against side, log2", self.log2_ratio)
    }
}

fn ball(x: f64) -> Ball {
    Ball::new(x, 192)
}

/// The gap that the lemmas ask for.
fn gap(n: usize) -> f64 {
    2.0 * (n as f64).ln() + 3.0
}

/// Two different sets of n numbers with gaps just above `2 log n + 3`.
fn two_sets(rng: &mut ChaCha8Rng) -> (Vec<f64>, Vec<f64>) {
    loop {
        let n = rng.random_range(2..8);
        let rungs = rng.random_range(n + 1..=2 * n);
        let top = rng.random_range(-50.0..50.0);
        let numbers = ladder(rng, top, gap(n), rungs);
        let (a, b) = (some(rng, &numbers, n), some(rng, &numbers, n));
        if a != b {
            return (a, b);
        }
    }
}

fn lemma_1(context: &Context) -> Result<Finding> {
    let permuted = difference(&[0.0, 5.0], &[5.0, 0.0], 192)?;
    let rng = &mut rng(1);
    let mut tally = Tally::new();
    let mut pairs: Vec<_> = (0..context.effort(2000, 20_000)).map(|_| two_sets(rng)).collect();
    // Where the first difference is as far from the top as can be.
    pairs.push((vec![20.0, -15.0], vec![20.0, -20.0]));
    for (a, b) in &pairs {
        let r = a.iter().chain(b).fold(0.0, |m: f64, x| m.max(x.abs()));
        let mut statement = lemmas::lemma_1(a, b, r)?;
        if context.mutated {
            statement.right = statement.right * ball(r).exp();
        }
        tally.add(&statement);
    }
    let counterexample = "boltz(0, 5) = boltz(5, 0), where a gap above (log 2)^2 e^(-10) = 2.2e-5 is claimed";
    let equal = permuted.certainly_equal(&Ball::zero());
    Ok(tally.tell(Finding::repaired(!equal && tally.all(), tally.all())).counterexample(counterexample))
}

fn lemma_1_lengths(context: &Context) -> Result<Finding> {
    let n = 100_f64;
    let r = n.ln() + 1.5 + 1e-9;
    let gap = difference(&[r], &[r, -r], 192)?.abs();
    let claimed = ball(n).ln() * ball(n).ln() * (ball(-2.0) * ball(r)).exp();
    let ratio = (gap.clone() / &claimed).to_interval();
    let mut repaired = lemmas::lemma_s(&[r], &[r, -r], 2.0 * r)?;
    repaired.right = repaired.right * ball(context.mutate(1.0, 2.0));
    let bound = repaired.right.to_interval().center();
    Ok(Finding::repaired(claimed.certainly_less(&gap), repaired.holds())
        .number("gap over the bound of Lemma 1", ratio.center())
        .number("gap over the bound of Lemma S", gap.to_interval().center() / bound)
        .counterexample(format!("{{r}} and {{r, -r}}, r = {r:.3}: {:.3} of the bound", ratio.center())))
}

fn lemma_2(context: &Context) -> Result<Finding> {
    let (size, runs) = (60, context.effort(100, 1000));
    let (mut tries, mut smallest) = (0, f64::INFINITY);
    for seed in 0..runs as u64 {
        let d = 1 + seed as usize % 6;
        let points = vectors(&mut rng(seed), size, d);
        let found = projection::lemma_2(d, &points, seed)?;
        tries += found.tries;
        let rows: Vec<&[f64]> = points.chunks_exact(d).collect();
        let n = Interval::point(size as f64);
        let share = (Interval::point(8.0) / (Interval::pi() * Interval::point(d as f64))).sqrt();
        let share = share / context.mutate(n.square(), n);
        for (i, j) in (0..size).flat_map(|i| (0..i).map(move |j| (i, j))) {
            let apart: Vec<Interval> =
                rows[i].iter().zip(rows[j]).map(|(&x, &y)| Interval::point(x) - Interval::point(y)).collect();
            let sum = |terms: &mut dyn Iterator<Item = Interval>| terms.fold(Interval::point(0.0), |sum, x| sum + x);
            let distance = sum(&mut apart.iter().map(|x| x.square())).sqrt();
            let along = sum(&mut apart.iter().zip(&found.v).map(|(&x, &v)| x * Interval::point(v)));
            smallest = smallest.min(along.mignitude() / (share * distance).hi());
        }
    }
    Ok(Finding::printed(smallest >= 1.0)
        .count("sets of 60 points", runs)
        .number("directions tried for each", tries as f64 / runs as f64)
        .number("smallest share over the bound", smallest))
}

fn lemma_3(context: &Context) -> Result<Finding> {
    let (size, d, runs) = (12, 3, context.effort(100, 1000));
    let delta = gap(10);
    let wrong = f64::from(size as u32 + 1).powi(-3);
    let mut smallest = f64::INFINITY;
    for seed in 0..runs as u64 {
        let found = projection::lemma_3(d, &vectors(&mut rng(seed), size, d), delta, seed)?;
        smallest = smallest.min(found.apart * context.mutate(1.0, wrong) / delta);
    }
    Ok(Finding::printed(smallest > 1.0)
        .count("vocabularies", runs)
        .number("smallest distance of scores over delta", smallest))
}

/// A random point whose first number is at or beyond `max - log n - distance`, or under the mutation at the maximum.
fn far_below(context: &Context, rng: &mut ChaCha8Rng, distance: f64) -> Vec<f64> {
    let n = rng.random_range(2..9);
    let mut a: Vec<f64> = vectors(rng, n, 1).iter().map(|x| 10.0 * x).collect();
    let max = a[1..].iter().copied().fold(f64::MIN, f64::max);
    let beyond = [0.0, 0.01, 1.0, 100.0][rng.random_range(0..4)] * rng.random::<f64>();
    a[0] = context.mutate(max - (n as f64).ln() - distance - beyond - 1e-12, max);
    a
}

fn lemma_4(context: &Context) -> Result<Finding> {
    let rng = &mut rng(4);
    let points = context.effort(2000, 20_000);
    let mut held = 0;
    for _ in 0..points {
        let a = far_below(context, rng, 1.0);
        let holds =
            if context.mutated { Boltzmann::at(&a)?.gradient()[0] < 0.0 } else { lemmas::lemma_4(&a, 0)?.holds() };
        held += usize::from(holds);
    }
    Ok(Finding::printed(held == points).count("points", points).count("with a negative derivative", held))
}

fn lemma_5(context: &Context) -> Result<Finding> {
    let rng = &mut rng(5);
    let points = context.effort(2000, 20_000);
    let mut held = 0;
    for _ in 0..points {
        let a = far_below(context, rng, 3.0);
        let holds = if context.mutated {
            Boltzmann::at(&a)?.second_derivative(0) < 0.0
        } else {
            lemmas::lemma_5(&a, 0)?.holds()
        };
        held += usize::from(holds);
    }
    Ok(Finding::printed(held == points).count("points", points).count("with a negative second derivative", held))
}

fn lemma_6(context: &Context) -> Result<Finding> {
    let rng = &mut rng(6);
    let (mut tried, mut held) = (0, 0);
    for _ in 0..context.effort(500, 5000) {
        let n = rng.random_range(3..8);
        let a = ladder(rng, 0.0, context.mutate(gap(n), 0.1), n);
        for k in 1..n - 1 {
            let raised: Vec<f64> = (0..n).map(|i| a[i.min(k)]).collect();
            let above = difference(&a[..=k], &a, 192)?.is_certainly_positive();
            let below = difference(&a, &raised, 192)?.is_certainly_positive();
            // The library's form of the lemma, where its hypotheses hold.
            let stated = context.mutated || lemmas::lemma_6(&a, k)?.iter().all(Inequality::holds);
            tried += 1;
            held += usize::from(above && below && stated);
        }
    }
    Ok(Finding::printed(held == tried).count("vectors and k", tried).count("for which both hold", held))
}

fn lemma_7(context: &Context) -> Result<Finding> {
    let rng = &mut rng(7);
    let mut tally = Tally::new();
    for _ in 0..context.effort(2000, 20_000) {
        let (a, b) = two_sets(rng);
        let mut statement = lemmas::lemma_7(&a, &b)?;
        if context.mutated {
            statement.left = -statement.left;
        }
        tally.add(&statement);
    }
    Ok(tally.tell(Finding::printed(tally.all())))
}

fn lemma_s(context: &Context) -> Result<Finding> {
    let rng = &mut rng(8);
    let factor = ball(context.mutate(1.0, 2.0));
    let mut tally = Tally::new();
    let mut add = |a: &[f64], b: &[f64], delta: f64| -> Result<()> {
        let mut statement = lemmas::lemma_s(a, b, delta)?;
        statement.right = statement.right * &factor;
        tally.add(&statement);
        Ok(())
    };
    for _ in 0..context.effort(2000, 20_000) {
        let delta = [1.5, 2.0, 3.0][rng.random_range(0..3)];
        let rungs = rng.random_range(2..12);
        let numbers = ladder(rng, 0.0, delta, rungs);
        let sizes = [rng.random_range(1..=rungs), rng.random_range(1..=rungs)];
        let [a, b] = sizes.map(|size| some(rng, &numbers, size));
        if a != b {
            add(&a, &b, delta)?;
        }
    }
    for n in 3..30 {
        // One set has the number where they first differ, the other all that follow.
        let without: Vec<f64> = std::iter::once(0.0).chain((2..n).map(|i| -3.0 * f64::from(i))).collect();
        add(&[0.0, -3.0], &without, 3.0)?;
    }
    Ok(tally.tell(Finding::printed(tally.all())))
}

fn lemma_m(context: &Context) -> Result<Finding> {
    let rng = &mut rng(9);
    let factor = ball(context.mutate(1.0, 2.0));
    let mut tally = Tally::new();
    let mut multisets: Vec<[Vec<f64>; 2]> = Vec::new();
    for _ in 0..context.effort(2000, 20_000) {
        let rungs = rng.random_range(2..6);
        let counts: Vec<[usize; 2]> = (0..rungs).map(|_| [rng.random_range(0..4), rng.random_range(0..4)]).collect();
        let size = |side: usize| counts.iter().map(|c| c[side]).sum::<usize>();
        if size(0) > 0 && size(1) > 0 {
            let numbers = ladder(rng, 0.0, gap(size(0).max(size(1))), rungs);
            let side = |side: usize| numbers.iter().zip(&counts).flat_map(|(&x, c)| vec![x; c[side]]).collect();
            multisets.push([side(0), side(1)]);
        }
    }
    multisets.push([vec![0.0], vec![0.0, -gap(2) - 1e-12]]);
    let mut equal = 0;
    for [a, b] in &multisets {
        if difference(a, b, 64)?.certainly_equal(&Ball::zero()) {
            equal += 1;
            continue;
        }
        let mut statement = lemmas::lemma_m(a, b)?;
        statement.right = statement.right * &factor;
        tally.add(&statement);
    }
    Ok(tally.tell(Finding::printed(tally.all())).count("equal normalized multisets met", equal))
}
