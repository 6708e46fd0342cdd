//! Lemma 7 and its proof, which is Lemma 1's, and the worked example before it.

use monolayer::Result;
use monolayer::arithmetic::{Ball, Number as _};
use monolayer::paper::boltzmann::{boltz, difference};
use monolayer::paper::lemmas::{self, Inequality};
use rand::RngExt as _;
use rand::rngs::ChaCha8Rng;

use super::support::{Tally, falls, float, gap, ladder, rng, two_sets};
use super::{Claim, Context, Finding};

pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "example-106",
        number: "(106) to (109)",
        statement: "the worked example: boltz(8,6,5) < boltz(8,6) < boltz(8,3+log 2), and boltz(8,3,1) is above",
        printed: r"a^{(i)} = (8, 6, 5), a^{(j)} = (4, 3, 1): boltz(a^{(i)}) \approx 8 > 4 \approx boltz(a^{(j)}) (106); a^{(i)} = (8, 6, 5), a^{(j)} = (8, 3, 1): boltz(a^{(j)}) \ge boltz(\bar{a}^{(j)}) with \bar{a}^{(j)} = (8, 3, 3) (107), boltz(a^{(i)}) \le boltz(\underline{a}^{(i)}) with \underline{a}^{(i)} = (8, 6, -\infty) (108), or boltz(8, 6); boltz(\bar{a}^{(j)}) = \frac{8 e^8 + 3 e^3 + 3 e^3}{e^8 + e^3 + e^3} = \frac{8 e^8 + 2 \cdot 3 e^3}{e^8 + 2 \cdot e^3} \approx \frac{8 e^8 + (3 + \log 2) e^{3 + \log 2}}{e^8 + .e^{3 + \log 2}} = boltz(8, 3 + \log 2) (109), boltz(8, 6) < boltz(8, 3 + \log 2)",
        note: "The sides of (109) differ by log 2 · 2e³/(e⁸ + 2e³), which is (122) for k = 1, n = 3. A dot before e^{3+log 2} in (109) may be the transcription's.",
        run: "each value in balls",
        code: ("crates/monolayer-lab/src/claims/lemma_seven.rs", "example"),
        mutation: "(8,6,6) in the place of (8,3,3)",
        find: example,
    },
    Claim {
        id: "lemma-7",
        number: "Lemma 7, (114) to (117)",
        statement: "where two sorted vectors first differ, they are (log n)² e^{−(a₁−b_{k+1})} apart under boltz",
        printed: r"a, b \in R^n tokenwise \delta-separated, in a decreasing order, no duplicate element in each, \delta > 2 \log n + 3, that is, i > j \Rightarrow a_i - a_j, b_i - b_j > \delta (114), a_i \ne b_j \Rightarrow |a_i - b_j| > \delta (115) for any i, j \in [n]; k \in \{0, \dots, n-1\} such that (a_1, \dots, a_k) = (b_1, \dots, b_k) and a_{k+1} > b_{k+1} (116) \Rightarrow |boltz(a) - boltz(b)| > (\log n)^2 e^{-(a_1 - b_{k+1})} (117)",
        note: "Read with the indices of (114) in the other order, as its words say; see equation-114.",
        run: "random pairs with gaps just above 2 log n + 3: the difference with its sign against (117), in balls",
        code: ("crates/monolayer/src/paper/lemmas.rs", "lemma_7"),
        mutation: "the sign of the difference is swapped",
        find: lemma_7,
    },
    Claim {
        id: "equation-114",
        number: "(114)",
        statement: "numbers in decreasing order are more than δ apart (as printed, with the indices exchanged)",
        printed: r"a, b \in R^n in a decreasing order: i > j \Rightarrow a_i - a_j, b_i - b_j > \delta (114) for any i, j \in [n]",
        note: "Repaired by i < j.",
        run: "the condition, word for word, on the vectors of lemma-7",
        code: ("crates/monolayer-lab/src/claims/lemma_seven.rs", "equation_114"),
        mutation: "i ≤ j",
        find: equation_114,
    },
    Claim {
        id: "equation-120",
        number: "(118) to (120)",
        statement: "cutting a after k + 1 numbers raises boltz, putting the rest of b at b_{k+1} lowers it (repaired: ≤ and ≥)",
        printed: r"a, b, k of Lemma 7, k \ge 1, \underline{a} = (a_1, a_2, \dots, a_k, a_{k+1}) \in R^{k+1} (118), \bar{b} = (a_1, a_2, \dots, a_k, b_{k+1}, b_{k+1}, \dots, b_{k+1}) \in R^n (119): boltz(a) < \underline{a}^T \sigma_S[\underline{a}] = boltz(\underline{a}) and boltz(b) > boltz(\bar{b}) (120)",
        note: "Strict for k + 1 < n. For k + 1 = n, a̲ is a and b̄ is b.",
        run: "random vectors with gaps just above 2 log n + 3, every k from 1 to n − 1, in balls",
        code: ("crates/monolayer/src/paper/lemmas.rs", "equation_120"),
        mutation: "gaps of 0.1",
        find: equation_120,
    },
    Claim {
        id: "equations-121-to-127",
        number: "(121) to (127)",
        statement: "case k ≥ 1: boltz(b̄) − boltz(a̲) step by step",
        printed: r"\gamma_k = \sum_{l=1}^k a_l e^{a_l} and \xi_k = \sum_{l=1}^k e^{a_l} (121); boltz(\bar{b}) = \frac{\gamma_k + (n-k) b_{k+1} e^{b_{k+1}}}{\xi_k + (n-k) e^{b_{k+1}}} = \frac{\gamma_k + b_{k+1} e^{b_{k+1} + \log(n-k)}}{\xi_k + e^{b_{k+1} + \log(n-k)}} = \frac{\gamma_k + (b_{k+1} + \log(n-k)) e^{b_{k+1} + \log(n-k)}}{\xi_k + e^{b_{k+1} + \log(n-k)}} - \frac{\log(n-k) \cdot e^{b_{k+1} + \log(n-k)}}{\xi_k + e^{b_{k+1} + \log(n-k)}} = boltz(a_1, \dots, a_k, b_{k+1} + \log(n-k)) - \frac{\log(n-k) \cdot e^{b_{k+1} + \log(n-k)}}{\xi_k + e^{b_{k+1} + \log(n-k)}} (122); boltz(\bar{b}) - boltz(\underline{a}) = boltz(a_1, \dots, a_k, b_{k+1} + \log(n-k)) - boltz(\underline{a}) - \frac{\log(n-k) \cdot e^{b_{k+1} + \log(n-k)}}{\xi_k + e^{b_{k+1} + \log(n-k)}} (123); boltz(a_1, \dots, a_k, b_{k+1} + \log(n-k)) - boltz(\underline{a}) > (a_{k+1} - b_{k+1} - \log(n-k)) (\delta + a_{k+1} - b_{k+1} - \log(n-k) - \log(k+1) - 1) \cdot \frac{e^{b_{k+1} + \log(n-k)}}{\xi_k + e^{b_{k+1} + \log(n-k)}} > (\delta - \log n) (2 \delta - 2 \log n - 1) \cdot \frac{e^{b_{k+1} + \log(n-k)}}{\xi_k + e^{b_{k+1} + \log(n-k)}} (124); boltz(a_1, \dots, a_k, b_{k+1} + \log(n-k)) - boltz(\underline{a}) > (\delta - \log n) (2 \delta - 2 \log n - 1) \cdot \frac{e^{b_{k+1} + \log(n-k)}}{\xi_k + e^{b_{k+1} + \log(n-k)}} > (\log n + 3) (2 \log n + 5) \cdot \frac{e^{b_{k+1} + \log(n-k)}}{\xi_k + e^{b_{k+1} + \log(n-k)}} (125); boltz(\bar{b}) - boltz(\underline{a}) = boltz(a_1, \dots, a_k, b_{k+1} + \log(n-k)) - boltz(\underline{a}) - \frac{\log(n-k) \cdot e^{b_{k+1} + \log(n-k)}}{\xi_k + e^{b_{k+1} + \log(n-k)}} > \frac{e^{b_{k+1} + \log(n-k)}}{\xi_k + e^{b_{k+1} + \log(n-k)}} [(\log n + 3) (2 \log n + 5) - \log(n-k)] > \frac{e^{b_{k+1} + \log(n-k)}}{\xi_k + e^{b_{k+1} + \log(n-k)}} \cdot 2 (\log n)^2 (126); \xi_k + e^{b_{k+1} + \log(n-k)} < \sum_{l=1}^{k+1} e^{a_l} < e^{a_1} \sum_{l=1}^{k+1} e^{-(l-1) \delta} < 2 e^{a_1} (127), as a_{k+1} > b_{k+1} + \log(n-k), \delta > \log 2",
        note: "",
        run: "random pairs that share k ≥ 1 numbers, every step in balls; a = (0,−6,−12), b = (0,−12,−18), δ = 5.9",
        code: ("crates/monolayer-lab/src/claims/lemma_seven.rs", "Chain"),
        mutation: "2δ in the place of δ in (124)",
        find: case_one,
    },
    Claim {
        id: "equation-128",
        number: "(128)",
        statement: "case k ≥ 1: (126) and (127) give (117) (repaired: ≥ in the last step, which is an equality for k = n − 1)",
        printed: r"k \ge 1: boltz(\bar{b}) - boltz(\underline{a}) > \frac{e^{b_{k+1} + \log(n-k)}}{\xi_k + e^{b_{k+1} + \log(n-k)}} \cdot 2 (\log n)^2 > \frac{e^{b_{k+1} + \log(n-k)}}{2 e^{a_1}} \cdot 2 (\log n)^2 > (\log n)^2 e^{-(a_1 - b_{k+1})} (128)",
        note: "The chain as a whole stays strict by its first steps.",
        run: "random pairs that share k ≥ 1 numbers, every step in balls",
        code: ("crates/monolayer-lab/src/claims/lemma_seven.rs", "Chain"),
        mutation: "3(log n)² in the place of (log n)² in the last step",
        find: equation_128,
    },
    Claim {
        id: "equations-129-to-131",
        number: "(129) to (131)",
        statement: "case k = 0: boltz(a) − boltz(b) is at least log n",
        printed: r"k = 0, boltz(b) \le b_1, \bar{a} = (a_1, a_1 - \delta, \dots, a_1 - \delta) \in R^n (129), boltz(a) > boltz(\bar{a}); boltz(\bar{a}) = \frac{a_1 e^{a_1} + (n-1) (a_1 - \delta) e^{a_1 - \delta}}{e^{a_1} + (n-1) e^{a_1 - \delta}} = \frac{a_1 + (n-1) (a_1 - \delta) e^{-\delta}}{1 + (n-1) e^{-\delta}} = a_1 - \frac{(n-1) \delta e^{-\delta}}{1 + (n-1) e^{-\delta}} (130); boltz(a) - boltz(b) \ge boltz(\bar{a}) - b_1 > a_1 - \frac{(n-1) \delta e^{-\delta}}{1 + (n-1) e^{-\delta}} - (a_1 - \delta) = \delta - \frac{(n-1) \delta e^{-\delta}}{1 + (n-1) e^{-\delta}} = \frac{\delta}{1 + (n-1) e^{-\delta}} \ge \log n (131); \log n > (\log n)^2 e^{-(a_1 - b_1)}, since a_1 - b_1 > \log n \Rightarrow \log n \cdot e^{-(a_1 - b_1)} < 1",
        note: "For n ≥ 2. For n = 1, which Lemma 7 does not exclude, ā is a and log n is 0, so boltz(a) > boltz(ā) and the last step are equalities (docs/errata.md, slips); (117) is strict there all the same.",
        run: "random pairs that differ in their first number, n from 2 to 6, every step in balls; (117) for n = 1; a = (0,−6,−12), b = (−6,−12,−18), δ = 5.9",
        code: ("crates/monolayer-lab/src/claims/lemma_seven.rs", "case_two"),
        mutation: "δ² in the place of δ in the fraction of (131)",
        find: case_two,
    },
];

/// Bits for differences of Boltzmann values, which may be as small as e^-200.
fn ball(x: f64) -> Ball {
    Ball::new(x, 768)
}

/// The library's operator, which is defined for one number or more.
fn value(a: &[Ball]) -> Ball {
    boltz(a).expect("not empty")
}

fn balls(a: &[f64]) -> Vec<Ball> {
    a.iter().map(|&x| ball(x)).collect()
}

fn example(context: &Context) -> Result<Finding> {
    let of = |a: &[f64]| value(&balls(a));
    let last = ball(3.0) + ball(2.0).ln();
    let raised = of(&context.mutate([8.0, 3.0, 3.0], [8.0, 6.0, 6.0]));
    let (first, other) = (of(&[8.0, 6.0, 5.0]), of(&[8.0, 3.0, 1.0]));
    let (cut, merged) = (of(&[8.0, 6.0]), value(&[ball(8.0), last]));
    let (e8, e3) = (ball(8.0).exp(), ball(3.0).exp());
    let fraction = (ball(8.0) * &e8 + ball(6.0) * &e3) / (e8 + ball(2.0) * e3);
    let same = (fraction - &raised).to_interval().magnitude() < 1e-40;
    let near = (merged.clone() - &raised).to_interval().magnitude() < 0.01;
    let order =
        falls(&[&first, &of(&[4.0, 3.0, 1.0])]) && falls(&[&other, &raised, &cut, &first]) && falls(&[&merged, &cut]);
    Ok(Finding::printed(order && same && near)
        .number("boltz(8,6,5)", float(&first))
        .number("boltz(4,3,1)", float(&of(&[4.0, 3.0, 1.0])))
        .number("boltz(8,3,1)", float(&other))
        .number("boltz(8,3,3)", float(&raised))
        .number("boltz(8,6)", float(&cut))
        .number("boltz(8, 3+log 2)", float(&merged)))
}

fn lemma_7(context: &Context) -> Result<Finding> {
    let rng = &mut rng(7);
    let mut tally = Tally::new();
    for _ in 0..context.effort(1000, 20_000) {
        let (a, b) = two_sets(rng);
        let mut statement = lemmas::lemma_7(&a, &b)?;
        if context.mutated {
            statement.left = -statement.left;
        }
        tally.add(&statement);
    }
    Ok(tally.tell(Finding::printed(tally.all())))
}

fn equation_114(context: &Context) -> Result<Finding> {
    let rng = &mut rng(7);
    let vectors: Vec<Vec<f64>> = (0..200).map(|_| two_sets(rng).0).chain([vec![5.0, 0.0]]).collect();
    let satisfy = |asked: &dyn Fn(usize, usize) -> bool, sign: f64| {
        let all = |a: &&Vec<f64>| {
            let indices = (0..a.len()).flat_map(|i| (0..a.len()).map(move |j| (i, j)));
            indices.filter(|&(i, j)| asked(i, j)).all(|(i, j)| sign * (a[i] - a[j]) > gap(a.len()))
        };
        vectors.iter().filter(all).count()
    };
    let printed = satisfy(&|i, j| i > j, 1.0);
    let repaired = satisfy(&|i, j| i < j || context.mutated && i == j, 1.0);
    Ok(Finding::repaired(printed == vectors.len(), repaired == vectors.len())
        .count("vectors in decreasing order", vectors.len())
        .count("that satisfy (114) as printed", printed)
        .count("that satisfy it with i < j", repaired)
        .counterexample("a = (5, 0), n = 2: i = 2, j = 1 gives a_i − a_j = −5, where more than δ > 4.386 is asked for"))
}

fn equation_120(context: &Context) -> Result<Finding> {
    let rng = &mut rng(6);
    let (mut tried, mut strict, mut held) = (0, 0, 0);
    for _ in 0..context.effort(200, 5000) {
        let n = rng.random_range(2..8);
        let a = ladder(rng, 0.0, context.mutate(gap(n), 0.1), n);
        // a and b agree up to k, and b_{k+1} may be any number below: a_{k+1} for both will do.
        for k in 1..n {
            let raised: Vec<f64> = (0..n).map(|i| a[i.min(k)]).collect();
            let (above, below) = (difference(&a[..=k], &a, 192)?, difference(&a, &raised, 192)?);
            tried += 1;
            strict += usize::from(above.is_certainly_positive() && below.is_certainly_positive());
            // The library's form where its hypotheses hold; equalities for k + 1 = n.
            let stated = context.mutated || k + 1 == n || lemmas::equation_120(&a, k)?.iter().all(Inequality::holds);
            let not_less = |x: &Ball| !x.certainly_less(&Ball::zero());
            held += usize::from(not_less(&above) && not_less(&below) && stated);
        }
    }
    Ok(Finding::repaired(strict == tried, held == tried)
        .count("vectors and k", tried)
        .count("strict as printed", strict)
        .count("with ≤ and ≥", held)
        .counterexample(
            "n = 2, k = 1, a = (0, −5), b = (0, −10): a̲ = a and b̄ = b, so both sides of each inequality are equal",
        ))
}

/// Two decreasing vectors that first differ after k numbers, gaps above delta, `a_{k+1} > b_{k+1}`.
fn differing_after(rng: &mut ChaCha8Rng, n: usize, k: usize) -> (Vec<f64>, Vec<f64>, f64) {
    let mut x = rng.random_range(-5.0..5.0);
    let mut numbers = Vec::new();
    for _ in 0..2 * n {
        numbers.push(x);
        x -= gap(n) * (1.0 + 0.2 * rng.random::<f64>()) + 1e-9;
    }
    let skipped = rng.random_range(1..=n - k);
    let a = numbers[..n].to_vec();
    let b = (0..n).map(|i| numbers[if i < k { i } else { i + skipped }]).collect();
    (a, b, gap(n) + 5e-10)
}

/// The proof of Lemma 7 for k >= 1, its numbers one after another.
struct Chain {
    /// (122): both sides.
    raised: [Ball; 2],
    /// (124), (125): the left side, then the bounds.
    lifted: [Ball; 4],
    /// (126): the left side, then the bounds.
    difference: [Ball; 3],
    /// (127), from the largest to the smallest.
    denominators: [Ball; 4],
    /// (128) after its first bound, which is the last of (126).
    last: [Ball; 2],
}

impl Chain {
    /// Evaluates for decreasing a and b that first differ after k numbers; `factor` is 1 but for mutations.
    fn new(a: &[f64], b: &[f64], k: usize, delta: f64, factor: f64) -> Self {
        let n = a.len();
        let (log_n, log_rest, log_k) = (ball(n as f64).ln(), ball((n - k) as f64).ln(), ball(k as f64 + 1.0).ln());
        let (next, below, delta) = (ball(a[k]), ball(b[k]), ball(delta));
        let sum = |term: &dyn Fn(usize) -> Ball, count: usize| (0..count).map(term).fold(Ball::zero(), |x, y| x + y);
        let (gamma, xi) = (sum(&|l| ball(a[l]) * ball(a[l]).exp(), k), sum(&|l| ball(a[l]).exp(), k));
        let shifted = below.clone() + &log_rest;
        let power = shifted.exp();
        let rho = power.clone() / (xi.clone() + &power);
        let count = ball((n - k) as f64);
        let fraction = (gamma + count.clone() * &below * below.exp()) / (xi.clone() + count * below.exp());
        let merged = value(&[balls(&a[..k]), vec![shifted]].concat());
        let cut = value(&balls(&a[..=k]));
        let step = next.clone() - &below - &log_rest;
        let first = step.clone() * (delta.clone() + &step - log_k - ball(1.0)) * &rho;
        let used = delta.clone() * ball(factor);
        let second = (used.clone() - &log_n) * (ball(2.0) * used - ball(2.0) * &log_n - ball(1.0)) * &rho;
        let constant = (log_n.clone() + ball(3.0)) * (ball(2.0) * &log_n + ball(5.0));
        let squared = log_n.clone() * &log_n;
        let whole = sum(&|l| ball(a[l]).exp(), k + 1);
        let geometric = ball(a[0]).exp() * sum(&|l| (-(delta.clone() * ball(l as f64))).exp(), k + 1);
        let twice = ball(2.0) * ball(a[0]).exp();
        Self {
            raised: [fraction, merged.clone() - log_rest.clone() * &rho],
            lifted: [merged.clone() - &cut, first, second, constant.clone() * &rho],
            difference: [
                merged - log_rest.clone() * &rho - cut,
                rho.clone() * (constant - log_rest),
                rho * ball(2.0) * &squared,
            ],
            denominators: [twice.clone(), geometric, whole, xi + &power],
            last: [power / twice * ball(2.0) * &squared, squared * (ball(b[k]) - ball(a[0])).exp()],
        }
    }

    /// Whether (121) to (127) hold.
    fn holds(&self) -> bool {
        let off = (self.raised[0].clone() - &self.raised[1]).to_interval().magnitude();
        let fall = |chain: &[Ball]| falls(&chain.iter().collect::<Vec<&Ball>>());
        off < 1e-100 && fall(&self.lifted) && fall(&self.difference) && fall(&self.denominators)
    }
}

/// Random cases with k >= 1.
fn chains(context: &Context, factor: f64) -> Vec<(usize, usize, Chain)> {
    let rng = &mut rng(11);
    let mut one = || {
        let n = rng.random_range(2..7);
        let k = rng.random_range(1..n);
        let (a, b, delta) = differing_after(rng, n, k);
        (n, k, Chain::new(&a, &b, k, delta, factor))
    };
    (0..context.effort(200, 2000)).map(|_| one()).collect()
}

fn case_one(context: &Context) -> Result<Finding> {
    let factor = context.mutate(1.0, 2.0);
    let chains = chains(context, factor);
    let example = Chain::new(&[0.0, -6.0, -12.0], &[0.0, -12.0, -18.0], 1, 5.9, factor);
    let held = chains.iter().filter(|chain| chain.2.holds()).count();
    Ok(Finding::printed(held == chains.len() && example.holds())
        .count("pairs", chains.len())
        .count("where every step holds", held)
        .number("example: (122)", float(&example.raised[0]))
        .number("(124), left", float(&example.lifted[0]))
        .number("(124), first bound", float(&example.lifted[1]))
        .number("(124), second bound", float(&example.lifted[2]))
        .number("(125)", float(&example.lifted[3]))
        .number("(126), left", float(&example.difference[0]))
        .number("(126), last bound", float(&example.difference[2])))
}

fn equation_128(context: &Context) -> Result<Finding> {
    let chains = chains(context, 1.0);
    let (mut strict, mut held) = (0, 0);
    for (n, k, chain) in &chains {
        let end = chain.last[1].clone() * ball(context.mutate(1.0, 3.0));
        let before = falls(&[&chain.difference[0], &chain.difference[2], &chain.last[0]]);
        let last = chain.last[0].clone() - &end;
        let small = (last.clone() / &end).to_interval().magnitude() < 1e-100;
        strict += usize::from(before && last.is_certainly_positive() && !small);
        held += usize::from(before && (if k + 1 == *n { small } else { last.is_certainly_positive() }));
    }
    let example = Chain::new(&[0.0, -5.0], &[0.0, -10.0], 1, 4.5, 1.0);
    Ok(Finding::repaired(strict == chains.len(), held == chains.len())
        .count("pairs", chains.len())
        .count("strict as printed", strict)
        .count("with ≥ in the last step", held)
        .number("n = 2, k = 1: before the last step", float(&example.last[0]))
        .number("after it", float(&example.last[1]))
        .counterexample("n = 2, k = 1, a = (0, −5), b = (0, −10): e^{−10 + log 1}/2 · 2(log 2)² and (log 2)² e^{−10} are both 2.1813e-5"))
}

/// (129) to (131) for decreasing a and b with `a_1 > b_1`: whether (130) and every step of (131) hold, and the numbers of (131).
fn first_differs(a: &[f64], b: &[f64], delta: f64, power: i32) -> (bool, [Ball; 5]) {
    let (n, top, delta) = (a.len(), ball(a[0]), ball(delta));
    let raised: Vec<Ball> = (0..n).map(|i| if i == 0 { top.clone() } else { top.clone() - &delta }).collect();
    let rest = ball(n as f64 - 1.0) * (-delta.clone()).exp();
    let below = ball(1.0) + &rest;
    let second = (top.clone() + rest.clone() * (top.clone() - &delta)) / &below;
    let third = top.clone() - rest * &delta / &below;
    let same = |x: &Ball| (x.clone() - value(&raised)).to_interval().magnitude() < 1e-100;
    let log_n = ball(n as f64).ln();
    let used = (1..power).fold(delta.clone(), |x, _| x * &delta);
    let numbers = [
        value(&balls(a)) - value(&balls(b)),
        value(&raised) - ball(b[0]),
        used / below,
        log_n.clone(),
        log_n.clone() * &log_n * (ball(b[0]) - &top).exp(),
    ];
    (same(&second) && same(&third) && falls(&numbers.iter().collect::<Vec<_>>()), numbers)
}

fn case_two(context: &Context) -> Result<Finding> {
    let rng = &mut rng(12);
    let (pairs, power) = (context.effort(300, 3000), context.mutate(1, 2));
    let mut held = 0;
    for _ in 0..pairs {
        let n = rng.random_range(2..7);
        let (a, b, delta) = differing_after(rng, n, 0);
        held += usize::from(first_differs(&a, &b, delta, power).0);
    }
    let (example, numbers) = first_differs(&[0.0, -6.0, -12.0], &[-6.0, -12.0, -18.0], 5.9, power);
    let [difference, raised, fraction, log_n, bound] = numbers.map(|x| float(&x));
    // One number: the steps are equalities, the lemma is not.
    let alone = lemmas::lemma_7(&[0.0], &[-4.0])?;
    Ok(Finding::printed(example && held == pairs && alone.holds())
        .count("pairs", pairs)
        .count("where every step holds", held)
        .number("example: boltz(a) − boltz(b)", difference)
        .number("boltz(ā) − b₁", raised)
        .number("δ/(1 + (n−1)e^{−δ})", fraction)
        .number("log n", log_n)
        .number("(117)", bound)
        .number("n = 1, a = 0, b = −4: left side of (117)", float(&alone.left))
        .number("its right side", float(&alone.right)))
}
