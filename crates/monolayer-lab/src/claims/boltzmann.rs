//! Lemmas 4 to 6: how the Boltzmann operator moves with one of its arguments.

use monolayer::Result;
use monolayer::arithmetic::{Ball, Number as _};
use monolayer::paper::attention::softmax;
use monolayer::paper::boltzmann::{Boltzmann, boltz, difference, log_partition};
use monolayer::paper::lemmas;
use rand::RngExt as _;
use rand::rngs::ChaCha8Rng;

use super::support::{Tally, ball, falls, float, rng, vectors};
use super::{Claim, Context, Finding};

pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "lemma-4",
        number: "Lemma 4, (84), (92), (93)",
        statement: "boltz decreases in a_i where a_i < max a − log n − 1",
        printed: r"n \in N_+, i \in [n], a = (a_1, \dots, a_n) \in R^n: boltz decreases monotonically in a_i where a_i < \max_{j \in [n]} a_j - \log n - 1 (84); 1 + S(p) + \log p_i < 0 \Leftrightarrow 1 + S(p) + (a_i - L(a)) < 0 \Leftrightarrow a_i < L(a) - S(p) - 1 (92), \max_{j \in [n]} a_j \le L(a), S(p) \le \log n: \frac{\partial}{\partial a_i} boltz(a) < 0 whenever a_i < \max_{j \in [n]} a_j - \log n - 1 (93)",
        note: "",
        run: "the derivative at random points at and beyond the threshold, in balls, and the printed form in floats",
        code: ("crates/monolayer/src/paper/lemmas.rs", "lemma_4"),
        mutation: "a_i at the maximum",
        find: lemma_4,
    },
    Claim {
        id: "equation-83",
        number: "Lemma 4, (83), (91), (96)",
        statement: "the derivative of boltz is p_i(1 + log p_i + S(p))",
        printed: r"n \in N_+, i \in [n], a \in R^n, p = \sigma_S[a]: \frac{\partial}{\partial a_i} boltz(a) = p_i (1 + \log p_i + S(p)) (83), (96); \frac{\partial}{\partial a_i} boltz(a) = \frac{\partial}{\partial a_i} L(a) - \frac{\partial}{\partial a_i} S(p) = p_i + p_i (\log p_i + S(p)) = p_i (1 + \log p_i + S(p)) (91)",
        note: "",
        run: "the formula against difference quotients in balls of 1000 bits, and against p_i(1 + a_i − boltz(a)), which is equal by (85)",
        code: ("crates/monolayer/src/paper/boltzmann.rs", "gradient"),
        mutation: "the sign of S(p) is swapped",
        find: equation_83,
    },
    Claim {
        id: "equation-85",
        number: "(81), (82), (85)",
        statement: "boltz is the partition function minus the entropy",
        printed: r"L(a) = \log(\sum_{i=1}^n e^{a_i}) (81), S(p) = -\sum_{i=1}^n p_i \log p_i (82), p = \sigma_S[a]: L(a) - S(p) = \log(\sum_{j=1}^n e^{a_j}) + \sum_{k=1}^n p_k \log p_k = \sum_{k=1}^n p_k \log(p_k \sum_{j=1}^n e^{a_j}) = \sum_{k=1}^n p_k \log e^{a_k} = \sum_{k=1}^n p_k a_k = boltz(a) (85)",
        note: "",
        run: "the three formulas at random points, in balls; a = (1, −2, 1/2)",
        code: ("crates/monolayer/src/paper/boltzmann.rs", "log_partition"),
        mutation: "L(a) + S(p)",
        find: equation_85,
    },
    Claim {
        id: "equation-87",
        number: "(86) to (90)",
        statement: "the derivatives of the softmax, the partition function and the entropy",
        printed: r"\frac{\partial}{\partial a_i} boltz(a) = \frac{\partial}{\partial a_i} L(a) - \frac{\partial}{\partial a_i} S(p) (86); \frac{\partial p_i}{\partial a_j} = \frac{\partial}{\partial a_j} \frac{e^{a_i}}{\sum_{k=1}^n e^{a_k}} = \frac{\frac{\partial}{\partial a_j} e^{a_i} \cdot \sum_{k=1}^n e^{a_k} - e^{a_i} \cdot \frac{\partial}{\partial a_j} \sum_{k=1}^n e^{a_k}}{(\sum_{k=1}^n e^{a_k})^2} = \frac{\delta_{ij} e^{a_j} \cdot \sum_{k=1}^n e^{a_k} - e^{a_i} \cdot e^{a_j}}{(\sum_{k=1}^n e^{a_k})^2} = p_j (\delta_{ij} - p_i) (87) for any i, j \in [n], \delta_{ij} = 0 if i \ne j, 1 if i = j (88); \frac{\partial L(a)}{\partial a_i} = \frac{e^{a_i}}{\sum_{j=1}^n e^{a_j}} = p_i (89); \frac{\partial S(p)}{\partial a_i} = \sum_{j=1}^n \frac{\partial S(p)}{\partial p_j} \cdot \frac{\partial p_j}{\partial a_i} = \sum_{j=1}^n \frac{\partial}{\partial p_j} (-\sum_{k=1}^n p_k \log p_k) \cdot p_i (\delta_{ji} - p_j) = \sum_{j=1}^n (-\log p_j - 1) \cdot p_i (\delta_{ji} - p_j) = -p_i \sum_{j=1}^n [\delta_{ji} (\log p_j + 1) - p_j \log p_j - p_j] = -p_i (\log p_i + 1 + S(p) - 1) = -p_i (\log p_i + S(p)) (90)",
        note: "",
        run: "each against difference quotients in balls of 1000 bits",
        code: ("crates/monolayer-lab/src/claims/boltzmann.rs", "equation_87"),
        mutation: "the sign of S(p) in (90) is swapped",
        find: equation_87,
    },
    Claim {
        id: "lemma-5",
        number: "Lemma 5, (94), (95)",
        statement: "boltz is concave in a_i where a_i < max a − log n − 3",
        printed: r"n \in N_+, i \in [n], a = (a_1, \dots, a_n) \in R^n: \frac{\partial^2}{\partial a_i^2} boltz(a) < 0 (94) where a_i < \max_{j \in [n]} a_j - \log n - 3 (95)",
        note: "",
        run: "the second derivative at random points at and beyond the threshold, in balls",
        code: ("crates/monolayer/src/paper/lemmas.rs", "lemma_5"),
        mutation: "a_i at the maximum",
        find: lemma_5,
    },
    Claim {
        id: "equation-97",
        number: "(97)",
        statement: "the second derivative of boltz is p_i[(1 − 2p_i)(log p_i + S(p) + 1) + 1]",
        printed: r"\frac{\partial^2}{\partial a_i^2} boltz(a) = \frac{\partial}{\partial a_i} [p_i (1 + \log p_i + S(p))] = \frac{\partial p_i}{\partial a_i} \cdot (1 + \log p_i + S(p)) + p_i \cdot \frac{\partial}{\partial a_i} (1 + \log p_i + S(p)) = p_i (1 - p_i) \cdot (1 + \log p_i + S(p)) + p_i \cdot [\frac{p_i (1 - p_i)}{p_i} - p_i (\log p_i + S(p))] = p_i [(1 - 2 p_i) (\log p_i + S(p) + 1) + 1] (97)",
        note: "",
        run: "the formula against second difference quotients in balls of 1000 bits",
        code: ("crates/monolayer/src/paper/boltzmann.rs", "second_derivative"),
        mutation: "1 − 2p_i becomes 1 − p_i",
        find: equation_97,
    },
    Claim {
        id: "equations-98-to-101",
        number: "(98) to (101)",
        statement: "where Lemma 5 applies, p_i < 1/4 and the bracket of (97) is negative",
        printed: r"a_i < \max_{j \in [n]} a_j - \log n - 3 < L(a) - S(p) - 3 (98); a_i < \max_{j \in [n]} a_j - \log n - 3 \Rightarrow \log p_i < -S(p) - 3 (99); under (95), with e^{-x} \le \frac{1}{1 + x} for x > -1: p_i < e^{-3} \le \frac{1}{1 + 3} = \frac{1}{4} (100), (1 - 2 p_i) (\log p_i + S(p) + 1) + 1 < (1 - 2 \cdot \frac{1}{4}) \cdot (-2) + 1 = 0 (101)",
        note: "",
        run: "each at random points at and beyond the threshold, in balls",
        code: ("crates/monolayer-lab/src/claims/boltzmann.rs", "inside_lemma_5"),
        mutation: "a_i at the maximum",
        find: inside_lemma_5,
    },
    Claim {
        id: "lemma-6",
        number: "Lemma 6, (102), (103)",
        statement: "lowering the last number, far below the largest, raises boltz by at least (103)",
        printed: r"n \ge 2, a = (a_1, \dots, a_{n-1}, a_n), b = (b_1, \dots, b_{n-1}, b_n) \in R^n, a_i = b_i for all i \in [n-1], \max_{i \in [n-1]} a_i - \delta > a_n > b_n (102) with \delta > \log n + 3 \Rightarrow boltz(b) - boltz(a) > (a_n - b_n) (\delta + a_n - b_n - \log n - 1) \cdot \frac{e^{b_n}}{\sum_{i=1}^n e^{b_i}} (103)",
        note: "The words before (103) announce boltz(a) − boltz(b). The ratio of the sides tends to 1 as δ grows and a_n − b_n shrinks: there is no better constant.",
        run: "random cases, n to 8 and δ to log n + 13, both sides in balls",
        code: ("crates/monolayer/src/paper/lemmas.rs", "lemma_6"),
        mutation: "without − log n − 1",
        find: lemma_6,
    },
    Claim {
        id: "equation-104",
        number: "(104), (105)",
        statement: "the tangent lies above boltz, which gives (103) step by step",
        printed: r"boltz(b_1, \dots, b_{n-1}, x) + (a_n - x) \cdot \frac{\partial}{\partial x} boltz(b_1, \dots, b_{n-1}, x) > boltz(b_1, \dots, b_{n-1}, a_n) (104) for any x < a_n; p = \sigma_S[b]: boltz(b) - boltz(a) > (a_n - b_n) \cdot (-\frac{\partial}{\partial x} boltz(b_1, \dots, b_{n-1}, x) |_{x = b_n}) = (a_n - b_n) \cdot [-p_n (1 + \log p_n + S(p))] > (a_n - b_n) \cdot [-p_n (1 + b_n - \max_{i \in [n]} b_i + \log n)] > (a_n - b_n) \cdot p_n (\delta + a_n - b_n - \log n - 1) (105)",
        note: "",
        run: "the cases of lemma-6, every step in balls",
        code: ("crates/monolayer-lab/src/claims/boltzmann.rs", "equation_104"),
        mutation: "a_n is above the maximum",
        find: equation_104,
    },
];

/// Bits for quotients of differences of 2^-100.
fn fine(x: f64) -> Ball {
    Ball::new(x, 1000)
}

/// The step of quotients.
const STEP: f64 = 1.0 / (1_u128 << 100) as f64;

/// `-sum p_i log p_i`.
fn entropy(p: &[Ball]) -> Ball {
    p.iter().fold(Ball::zero(), |sum, p| sum - p.clone() * p.ln())
}

/// `log p_i + S(p)` in floats, as printed.
fn printed_slope(point: &Boltzmann, i: usize) -> f64 {
    let log = |p: f64| if p > 0.0 { p.ln() } else { f64::MIN };
    let entropy = -point.probabilities.iter().filter(|p| **p > 0.0).map(|p| p * p.ln()).sum::<f64>();
    log(point.probabilities[i]) + entropy
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
    let points = context.effort(1000, 20_000);
    let mut held = 0;
    for _ in 0..points {
        let a = far_below(context, rng, 1.0);
        let printed = 1.0 + printed_slope(&Boltzmann::at(&a)?, 0) < 0.0;
        held += usize::from(printed && (context.mutated || lemmas::lemma_4(&a, 0)?.holds()));
    }
    Ok(Finding::printed(held == points).count("points", points).count("with a negative derivative", held))
}

fn lemma_5(context: &Context) -> Result<Finding> {
    let rng = &mut rng(5);
    let points = context.effort(1000, 20_000);
    let mut held = 0;
    for _ in 0..points {
        let a = far_below(context, rng, 3.0);
        let point = Boltzmann::at(&a)?;
        let printed = (1.0 - 2.0 * point.probabilities[0]) * (printed_slope(&point, 0) + 1.0) + 1.0 < 0.0;
        held += usize::from(printed && (context.mutated || lemmas::lemma_5(&a, 0)?.holds()));
    }
    Ok(Finding::printed(held == points).count("points", points).count("with a negative second derivative", held))
}

/// Random points, and for each the largest difference between a formula and the limit of a quotient.
fn largest_difference(
    points: usize,
    formula: impl Fn(&Boltzmann, usize) -> f64,
    quotient: impl Fn(&dyn Fn(f64) -> Ball) -> Ball,
) -> Result<f64> {
    let rng = &mut rng(5);
    let mut largest = 0.0_f64;
    for _ in 0..points {
        let n = rng.random_range(2..7);
        let a: Vec<f64> = vectors(rng, n, 1).iter().map(|x| 4.0 * x).collect();
        let (point, i) = (Boltzmann::at(&a)?, rng.random_range(0..n));
        let value = |step: f64| {
            let moved = |j: usize| if i == j { fine(a[j]) + fine(step) } else { fine(a[j]) };
            boltz(&(0..n).map(moved).collect::<Vec<Ball>>()).expect("not empty")
        };
        largest = largest.max((formula(&point, i) - float(&quotient(&value))).abs());
    }
    Ok(largest)
}

fn equation_83(context: &Context) -> Result<Finding> {
    let points = context.effort(300, 5000);
    let printed = |point: &Boltzmann, i: usize| {
        let p = point.probabilities[i];
        // log p + S, or log p - S.
        let slope = printed_slope(point, i);
        p * (1.0 + context.mutate(slope, 2.0 * p.ln() - slope))
    };
    let quotient = |value: &dyn Fn(f64) -> Ball| (value(STEP) - value(-STEP)) / fine(2.0 * STEP);
    let largest = largest_difference(points, printed, quotient)?;
    let other = largest_difference(points, |point, i| point.gradient()[i], quotient)?;
    let example = Boltzmann::at(&[1.0, -2.0, 0.5])?;
    Ok(Finding::printed(largest < 1e-12 && other < 1e-12)
        .count("points", points)
        .number("largest difference", largest)
        .number("of the other form", other)
        .number("∂boltz/∂a₁ at (1, −2, 1/2)", printed(&example, 0))
        .number("∂boltz/∂a₂ there", printed(&example, 1)))
}

fn equation_85(context: &Context) -> Result<Finding> {
    let rng = &mut rng(6);
    let points = context.effort(300, 5000);
    let mut largest = 0.0_f64;
    for _ in 0..points {
        let n = rng.random_range(1..8);
        let a: Vec<Ball> = vectors(rng, n, 1).iter().map(|x| ball(8.0 * x)).collect();
        let (partition, entropy) = (log_partition(&a)?, entropy(&softmax(&a)));
        let right = if context.mutated { partition + entropy } else { partition - entropy };
        largest = largest.max((right - boltz(&a)?).to_interval().magnitude());
    }
    let example = [1.0, -2.0, 0.5].map(ball);
    Ok(Finding::printed(largest < 1e-40)
        .count("points", points)
        .number("largest difference", largest)
        .number("L(1, −2, 1/2)", float(&log_partition(&example)?))
        .number("S there", float(&entropy(&softmax(&example))))
        .number("boltz there", float(&boltz(&example)?)))
}

fn equation_87(context: &Context) -> Result<Finding> {
    let rng = &mut rng(7);
    let points = context.effort(50, 500);
    let mut largest = [0.0_f64; 3];
    for _ in 0..points {
        let n = rng.random_range(2..6);
        let a: Vec<f64> = vectors(rng, n, 1).iter().map(|x| 4.0 * x).collect();
        let (i, j) = (rng.random_range(0..n), rng.random_range(0..n));
        let moved = |step: f64| {
            (0..n).map(|l| if l == j { fine(a[l]) + fine(step) } else { fine(a[l]) }).collect::<Vec<Ball>>()
        };
        let p = softmax(&moved(0.0));
        let quotient = |f: &dyn Fn(&[Ball]) -> Ball| (f(&moved(STEP)) - f(&moved(-STEP))) / fine(2.0 * STEP);
        let kronecker = fine(if i == j { 1.0 } else { 0.0 });
        let s = entropy(&p);
        let s = context.mutate(s.clone(), -s);
        let off = [
            quotient(&|a| softmax(a)[i].clone()) - p[j].clone() * (kronecker - &p[i]),
            quotient(&|a| log_partition(a).expect("not empty")) - &p[j],
            quotient(&|a| entropy(&softmax(a))) + p[j].clone() * (p[j].ln() + s),
        ];
        for (largest, off) in largest.iter_mut().zip(off) {
            *largest = largest.max(off.to_interval().magnitude());
        }
    }
    Ok(Finding::printed(largest.iter().all(|&x| x < 1e-12))
        .count("points", points)
        .number("(87): largest difference", largest[0])
        .number("(89): largest difference", largest[1])
        .number("(90): largest difference", largest[2]))
}

fn equation_97(context: &Context) -> Result<Finding> {
    let points = context.effort(300, 5000);
    let formula = |point: &Boltzmann, i: usize| {
        let p = point.probabilities[i];
        p * ((1.0 - context.mutate(2.0, 1.0) * p) * (printed_slope(point, i) + 1.0) + 1.0)
    };
    let quotient =
        |value: &dyn Fn(f64) -> Ball| (value(STEP) - value(0.0) - value(0.0) + value(-STEP)) / fine(STEP) / fine(STEP);
    let largest = largest_difference(points, formula, quotient)?;
    let example = Boltzmann::at(&[1.0, -2.0, 0.5])?;
    Ok(Finding::printed(largest < 1e-12)
        .count("points", points)
        .number("largest difference", largest)
        .number("∂²boltz/∂a₁² at (1, −2, 1/2)", formula(&example, 0)))
}

fn inside_lemma_5(context: &Context) -> Result<Finding> {
    let rng = &mut rng(8);
    let points = context.effort(300, 5000);
    let (mut held, mut largest) = (0, f64::MIN);
    for _ in 0..points {
        let numbers = far_below(context, rng, 3.0);
        let a: Vec<Ball> = numbers.iter().map(|&x| ball(x)).collect();
        let max = numbers.iter().copied().fold(f64::MIN, f64::max);
        let p = softmax(&a);
        let (s, log_p) = (entropy(&p), p[0].ln());
        let threshold = ball(max) - ball(a.len() as f64).ln() - ball(3.0);
        let beyond = log_partition(&a)? - &s - ball(3.0);
        let left = (ball(1.0) - ball(2.0) * &p[0]) * (log_p.clone() + &s + ball(1.0)) + ball(1.0);
        let steps = [
            falls(&[&beyond, &threshold, &a[0]]),
            falls(&[&(-s - ball(3.0)), &log_p]),
            falls(&[&ball(0.25), &(-ball(3.0)).exp(), &p[0]]),
            falls(&[&Ball::zero(), &left]),
        ];
        held += usize::from(steps.iter().all(|&step| step));
        largest = largest.max(left.to_interval().hi());
    }
    Ok(Finding::printed(held == points)
        .count("points", points)
        .count("where (98) to (101) hold", held)
        .number("largest left side of (101)", largest))
}

/// A random case of Lemma 6: all but the last number, `a_n`, `b_n`, delta.
fn case(rng: &mut ChaCha8Rng) -> (Vec<f64>, f64, f64, f64) {
    let n = rng.random_range(2..9);
    let shared: Vec<f64> = vectors(rng, n - 1, 1).iter().map(|x| 10.0 * x).collect();
    let max = shared.iter().copied().fold(f64::MIN, f64::max);
    let delta = (n as f64).ln() + 3.0 + 1e-9 + [0.0, 1.0, 10.0][rng.random_range(0..3)] * rng.random::<f64>();
    let a_n = max - delta - 1e-9 - [0.0, 0.1, 10.0][rng.random_range(0..3)] * rng.random::<f64>();
    let b_n = a_n - 1e-4 - [0.001, 1.0, 10.0][rng.random_range(0..3)] * rng.random::<f64>();
    (shared, a_n, b_n, delta)
}

fn lemma_6(context: &Context) -> Result<Finding> {
    let rng = &mut rng(6);
    let mut tally = Tally::new();
    for _ in 0..context.effort(2000, 20_000) {
        let (shared, a_n, b_n, delta) = case(rng);
        let with = |last: f64| [&shared[..], &[last]].concat();
        let mut statement = lemmas::lemma_6(&with(a_n), &with(b_n), delta)?;
        if context.mutated {
            let step = ball(delta) + ball(a_n) - ball(b_n);
            let printed = step.clone() - ball(shared.len() as f64 + 1.0).ln() - ball(1.0);
            statement.right = statement.right * step / printed;
        }
        tally.add(&statement);
    }
    let example = lemmas::lemma_6(&[0.0, -5.0], &[0.0, -6.0], 4.0)?;
    Ok(tally
        .tell(Finding::printed(tally.all()))
        .number("(0,−5), (0,−6), δ = 4: left side", float(&example.left))
        .number("right side", float(&example.right)))
}

fn equation_104(context: &Context) -> Result<Finding> {
    let rng = &mut rng(6);
    let cases = context.effort(300, 5000);
    let mut held = 0;
    for _ in 0..cases {
        let (shared, a_n, b_n, delta) = case(rng);
        let max = shared.iter().copied().fold(f64::MIN, f64::max);
        let a_n = context.mutate(a_n, max + 1.0);
        let with = |last: f64| [&shared[..], &[last]].concat();
        let (a, b) = (with(a_n), with(b_n));
        let p = softmax(&b.iter().map(|&x| ball(x)).collect::<Vec<Ball>>());
        let (p_n, log_n) = (&p[p.len() - 1], ball(p.len() as f64).ln());
        let step = ball(a_n) - ball(b_n);
        let gap = difference(&b, &a, 192)?;
        let tangent = step.clone() * -(p_n.clone() * (ball(1.0) + p_n.ln() + entropy(&p)));
        let top = ball(b.iter().copied().fold(f64::MIN, f64::max));
        let second = step.clone() * -(p_n.clone() * (ball(1.0) + ball(b_n) - top + &log_n));
        let third = step.clone() * p_n * (ball(delta) + &step - &log_n - ball(1.0));
        held += usize::from(falls(&[&gap, &tangent, &second, &third]));
    }
    Ok(Finding::printed(held == cases).count("cases", cases).count("where every step holds", held))
}
