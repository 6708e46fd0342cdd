//! Lemma 1, and the lemmas that replace it.

use monolayer::Result;
use monolayer::arithmetic::{Ball, Number as _};
use monolayer::paper::boltzmann::{Boltzmann, difference};
use monolayer::paper::lemmas;
use rand::RngExt as _;

use super::support::{Tally, ball, gap, ladder, rng, some, two_sets};
use super::{Claim, Context, Finding};

pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "lemma-1",
        number: "Lemma 1, (14), (16), (111) to (113)",
        statement: "boltz keeps different vectors (log n)² e^{−2r} apart (repaired: different as sets)",
        printed: r"a^{(1)}, \dots, a^{(m)} \in R^n tokenwise (r, \delta)-separated, no duplicate element in each, \delta > 2 \log n + 3 (14) \Rightarrow |boltz(a^{(i)}) - boltz(a^{(j)})| > \delta' = (\log n)^2 e^{-2r} (16) for each i, j \in [m] with a^{(i)} \ne a^{(j)}; proof, a = a^{(1)} \ne b = a^{(2)}, a_1 > \dots > a_n, b_1 > \dots > b_n: k \in \{0, \dots, n-1\} with (a_1, \dots, a_k) = (b_1, \dots, b_k) and a_{k+1} > b_{k+1} (111), |boltz(a) - boltz(b)| > (\log n)^2 e^{-(a_1 - b_{k+1})} (112) > (\log n)^2 e^{-2r} (113)",
        note: "Theorem 2's proof uses it for different sets only.",
        run: "(0,5) and (5,0); random vectors with gaps just above 2 log n + 3, both sides in balls",
        code: ("crates/monolayer/src/paper/lemmas.rs", "lemma_1"),
        mutation: "e^{−r} in the place of e^{−2r}",
        find: lemma_1,
    },
    Claim {
        id: "equation-15",
        number: "Lemma 1, (15), (110)",
        statement: "boltz is at most the largest of its arguments in absolute value",
        printed: r"a^{(1)}, \dots, a^{(m)} \in R^n tokenwise (r, \delta)-separated, no duplicate element in each, \delta > 2 \log n + 3 (14) \Rightarrow |boltz(a^{(i)})| \le r (15); a_1 > \dots > a_n: |boltz(a)| \le \max(|a_1|, |a_n|) < r (110)",
        note: "",
        run: "the vectors of lemma-1, and (6,0,−6), against max(|a₁|, |a_n|); r above all of them",
        code: ("crates/monolayer/src/paper/boltzmann.rs", "Boltzmann"),
        mutation: "|a_n| in the place of the maximum",
        find: equation_15,
    },
    Claim {
        id: "lemma-s",
        number: "in place of Lemmas 4 to 7",
        statement: "Lemma S: sets of any sizes with gaps of δ are C(δ) e^{−t} apart under boltz",
        printed: "",
        note: "t is the distance from the common maximum to the first number that only one set has.",
        run: "random pairs of sets for δ = 1.5, 2 and 3, and the worst family known, in balls",
        code: ("crates/monolayer/src/paper/lemmas.rs", "lemma_s"),
        mutation: "twice the constant",
        find: lemma_s,
    },
    Claim {
        id: "lemma-m",
        number: "in place of Lemmas 4 to 7",
        statement: "Lemma M: different normalized multisets with gaps of 2 log n + 3 are (1 − 2e^{−3}) t e^{−t}/(p p') apart",
        printed: "",
        note: "p and p' are the multiplicities of the common maximum, t the distance to the first number whose normalized multiplicities differ. No larger constant serves: docs/lemmas-s-m.md.",
        run: "random pairs of multisets, and the worst family known for n = 2, 10 and 100, both sides in balls",
        code: ("crates/monolayer/src/paper/lemmas.rs", "lemma_m"),
        mutation: "0.95 in the place of 1 − 2e^{−3}",
        find: lemma_m,
    },
];

fn lemma_1(context: &Context) -> Result<Finding> {
    let permuted = difference(&[0.0, 5.0], &[5.0, 0.0], 192)?;
    let rng = &mut rng(1);
    let mut tally = Tally::new();
    let mut pairs: Vec<_> = (0..context.effort(1000, 20_000)).map(|_| two_sets(rng)).collect();
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
    let counterexample = "a^(1) = (0, 5), a^(2) = (5, 0), n = 2, r just above 5: the gap is 0, where (16) asks for more than (log 2)² e^{−10} = 2.18e-5";
    let equal = permuted.certainly_equal(&Ball::zero());
    Ok(tally.tell(Finding::repaired(!equal && tally.all(), tally.all())).counterexample(counterexample))
}

fn equation_15(context: &Context) -> Result<Finding> {
    let rng = &mut rng(1);
    let mut vectors: Vec<Vec<f64>> = (0..context.effort(1000, 20_000)).map(|_| two_sets(rng).0).collect();
    vectors.extend([vec![6.0, 0.0, -6.0], vec![4.0]]);
    let (mut held, mut largest) = (0, 0.0_f64);
    for a in &vectors {
        let (first, last) = (a[0].abs(), a[a.len() - 1].abs());
        let (value, bound) = (Boltzmann::at(a)?.value().abs(), context.mutate(first.max(last), last));
        // The value is rounded.
        held += usize::from(value <= bound * (1.0 + 1e-14));
        largest = largest.max(value / bound);
    }
    Ok(Finding::printed(held == vectors.len())
        .count("vectors", vectors.len())
        .count("within the bound", held)
        .number("largest |boltz(a)| over max(|a₁|, |a_n|)", largest)
        .number("boltz(6, 0, −6)", Boltzmann::at(&[6.0, 0.0, -6.0])?.value()))
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
    for _ in 0..context.effort(1000, 20_000) {
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
    Ok(tally.tell(Finding::ours(tally.all())))
}

fn lemma_m(context: &Context) -> Result<Finding> {
    let rng = &mut rng(9);
    let sharp = ball(1.0) - ball(2.0) * ball(-3.0).exp();
    let factor = if context.mutated { ball(0.95) / sharp } else { ball(1.0) };
    let mut tally = Tally::new();
    let mut multisets: Vec<[Vec<f64>; 2]> = Vec::new();
    for _ in 0..context.effort(1000, 20_000) {
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
    // One has its maximum n - 1 times and the next number once, the other its maximum once and then n - 1 times the one after.
    for n in [2, 10, 100] {
        let step = gap(n) + 1e-12;
        multisets.push([[vec![0.0; n - 1], vec![-step]].concat(), [vec![0.0], vec![-2.0 * step; n - 1]].concat()]);
    }
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
    Ok(tally.tell(Finding::ours(tally.all())).count("equal normalized multisets met", equal))
}
