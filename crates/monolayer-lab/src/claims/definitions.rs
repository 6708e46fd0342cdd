//! Definitions 1 to 3.

use monolayer::arithmetic::{Ball, Interval, Number as _};
use monolayer::data::separation::separation;
use monolayer::paper::attention::softmax;
use monolayer::paper::boltzmann::{boltz, difference};
use monolayer::paper::theorem_two::Guarantee;
use monolayer::{Matrix, Result};

use super::support::{float, pairs_below, rng, vectors};
use super::theorem_two::{VOCABULARY, VOCABULARY_PAIRS, paper_attention};
use super::{Claim, Context, Finding};

pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "definition-1",
        number: "Definition 1",
        statement: "tokens are (r_min, r_max, δ)-separated for all constants strictly beyond their norms and distances",
        printed: r"m \in N; Z^{(1)}, \dots, Z^{(N)} \in R^{m \times n} are tokenwise (r_{\min}, r_{\max}, \delta)-separated if 1. ||Z^{(i)}_{:,k}|| > r_{\min} for any i \in [N], k \in [n]; 2. ||Z^{(i)}_{:,k}|| < r_{\max} for any i \in [N], k \in [n]; 3. ||Z^{(i)}_{:,k} - Z^{(j)}_{:,l}|| > \delta for any i, j \in [N], k, l \in [n] with Z^{(i)}_{:,k} \ne Z^{(j)}_{:,l}; tokenwise (r_{\max}, \epsilon)-separated if conditions 2 and 3 hold",
        note: "All three are strict: the smallest norm, largest norm and smallest distance are limits of the constants, not constants. The definition's last sentence writes ε for δ.",
        run: "the smallest and largest norm and the smallest distance of random vocabularies, moved by 1e-12 of themselves either way, against all norms and distances, enclosed",
        code: ("crates/monolayer/src/data/separation.rs", "separation"),
        mutation: "δ is the largest distance",
        find: definition_1,
    },
    Claim {
        id: "definition-2",
        number: "Definition 2",
        statement: "ids of the proof's weights are shorter than r and, for another set or another token, more than δ apart",
        printed: r"X^{(1)}, \dots, X^{(N)} \in R^{d \times n}; q : R^{d \times n} \to R^{d \times n} is an (r, \delta)-contextual mapping if 1. ||q(X^{(i)})_{:,k}|| < r for any i \in [N], k \in [n]; 2. ||q(X^{(i)})_{:,k} - q(X^{(j)})_{:,l}|| > \delta for any i, j \in [N], k, l \in [n] such that V^{(i)} \ne V^{(j)} or X^{(i)}_{:,k} \ne X^{(j)}_{:,l}",
        note: "",
        run: "both conditions, word for word, for all pairs of four vectors: 12 ids, 66 pairs of ids in balls of 8,192 bits, r of (7) and δ of (8)",
        code: ("crates/monolayer-lab/src/claims/definitions.rs", "definition_2"),
        mutation: "W^(O) = 0",
        find: definition_2,
    },
    Claim {
        id: "context-multisets",
        number: "beside Definition 2",
        statement: "attention sees the normalized multiset of tokens, not their set (for queries other than 0)",
        printed: "",
        note: "Definition 2 asks nothing where sets and tokens are equal; the paper's sequences have no duplicates.",
        run: "all multisets of up to five of three numbers, in pairs: are their Boltzmann values equal?",
        code: ("crates/monolayer/src/data/context.rs", "Contexts"),
        mutation: "the multiset is not normalized",
        find: context_multisets,
    },
    Claim {
        id: "definition-3",
        number: "Definition 3, (21), (13), (80)",
        statement: "the Boltzmann operator is the mean of numbers under their softmax",
        printed: r"boltz : R^m \to R, a \mapsto a^T \sigma_S[a] (21), m \in N_+; boltz : R^n \to R, a \mapsto a^T \sigma_S[a] (13); boltz(a) = \sum_{i=1}^n a_i p_i (80), p = (p_1, \dots, p_n) = \sigma_S[a]",
        note: "",
        run: "(21) and (80) against the library's operator for m = 1 to 8, in balls; boltz(0, 5)",
        code: ("crates/monolayer/src/paper/boltzmann.rs", "boltz"),
        mutation: "the softmax of −a",
        find: definition_3,
    },
    Claim {
        id: "equation-6",
        number: "(6), (62)",
        statement: "no duplicates: different places have different tokens (as printed, places need not differ)",
        printed: r"X^{(i)}_{:,k} \ne X^{(i)}_{:,l} (6) for any i \in [N] and k, l \in [n]; \tilde{G}_D = \{L \in G_D | \forall k, l \in [n], L_{:,k} \ne L_{:,l}\} (62)",
        note: "Repaired by k ≠ l, which is plainly meant.",
        run: "(62) word for word for d = 1, n = 2, D = 3, and with k ≠ l",
        code: ("crates/monolayer-lab/src/claims/definitions.rs", "equation_6"),
        mutation: "k > l is asked of k = l, too",
        find: equation_6,
    },
];

fn definition_1(context: &Context) -> Result<Finding> {
    let (d, size) = (5, 60);
    let (mut checked, mut violated, mut admitted) = (0, 0, 0);
    let vocabularies = context.effort(100, 1000);
    for seed in 0..vocabularies as u64 {
        let points = vectors(&mut rng(seed), size, d);
        let rows: Vec<Vec<Interval>> =
            points.chunks_exact(d).map(|x| x.iter().map(|&x| Interval::point(x)).collect()).collect();
        let length = |x: &mut dyn Iterator<Item = Interval>| x.fold(Interval::zero(), |sum, x| sum + x.square()).sqrt();
        let norms: Vec<Interval> = rows.iter().map(|x| length(&mut x.iter().copied())).collect();
        let distance = |i: usize, j: usize| length(&mut rows[i].iter().zip(&rows[j]).map(|(&x, &y)| x - y));
        let distances: Vec<Interval> = pairs_below(size).map(|(i, j)| distance(i, j)).collect();
        let found = separation(d, &points);
        let largest = distances.iter().map(|x| x.hi()).fold(0.0, f64::max);
        let delta = context.mutate(found.epsilon, largest);
        // How many of the three conditions fail somewhere for constants moved by a factor.
        let failures = |slack: f64| {
            let [r_min, r_max] = [found.r_min * (1.0 - slack), found.r_max * (1.0 + slack)];
            let norms = norms.iter().filter(|x| x.lo() <= r_min || x.hi() >= r_max).count();
            norms + distances.iter().filter(|x| x.lo() <= delta * (1.0 - slack)).count()
        };
        violated += failures(1e-12);
        checked += norms.len() + distances.len();
        admitted += usize::from(failures(-1e-12) < 3);
    }
    // Norms 5 and 10 and distance 5, exactly: the constants 5, 10 and 5 are not admitted, since all three conditions are strict.
    let exact = separation(2, &[3.0, 4.0, 6.0, 8.0]);
    let strict = exact.r_min == 5.0 && exact.r_max == 10.0 && exact.epsilon == 5.0;
    Ok(Finding::printed(violated == 0 && admitted == 0 && strict)
        .count("norms and distances", checked)
        .count("violated by constants 1e-12 beyond", violated)
        .count("vocabularies that admit constants 1e-12 within", admitted))
}

fn definition_2(context: &Context) -> Result<Finding> {
    let bits = 1 << 13;
    let attention = paper_attention(context.mutate(1.0, 0.0), |&x| Ball::new(x, bits))?;
    let constants = separation(2, &VOCABULARY.concat());
    let promised = Guarantee::new(4, 2, 2, &constants).map_or(f64::NAN, |found| found.log2_delta);
    let r = constants.r_max + constants.epsilon / 4.0;
    // (set, token, id).
    let mut ids: Vec<([usize; 2], usize, Vec<Ball>)> = Vec::new();
    for (i, j) in VOCABULARY_PAIRS {
        let tokens = [VOCABULARY[i], VOCABULARY[j]].concat();
        let out = attention.apply(&Matrix::new(2, 2, tokens.into_iter().map(|x| Ball::new(x, bits)).collect()))?;
        ids.extend([i, j].into_iter().zip(out.iter_rows()).map(|(token, id)| ([i, j], token, id.to_vec())));
    }
    let length = |x: &mut dyn Iterator<Item = Ball>| x.fold(Ball::zero(), |sum, x| sum + x.clone() * x).log2_abs();
    // Half the logarithm of the square.
    let longest = ids.iter().map(|id| length(&mut id.2.iter().cloned()).hi() / 2.0).fold(f64::MIN, f64::max);
    let (mut pairs, mut smallest) = (0, f64::INFINITY);
    for (i, j) in pairs_below(ids.len()) {
        let (a, b) = (&ids[i], &ids[j]);
        if a.0 != b.0 || a.1 != b.1 {
            pairs += 1;
            let apart = length(&mut a.2.iter().zip(&b.2).map(|(x, y)| x.clone() - y));
            smallest = smallest.min(apart.lo() / 2.0);
        }
    }
    Ok(Finding::printed(longest.exp2() < r && smallest > promised)
        .count("ids", ids.len())
        .count("pairs of ids", pairs)
        .number("longest id", longest.exp2())
        .number("r of (7)", r)
        .number("log2 of the smallest distance", smallest)
        .number("log2 of δ of (8)", promised))
}

fn context_multisets(context: &Context) -> Result<Finding> {
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
    for (i, a) in counts.iter().enumerate() {
        for b in &counts[..i] {
            let gap = difference(&tokens(a), &tokens(b), 192)?;
            let (equal, apart) = (gap.certainly_equal(&Ball::zero()), gap.abs().is_certainly_positive());
            pairs += 1;
            wrong_as_sets += usize::from(set(a) == set(b) && apart);
            wrong += usize::from(if same_context(a, b) { !equal } else { !apart });
        }
    }
    Ok(Finding::ours(wrong_as_sets > 0 && wrong == 0)
        .count("pairs", pairs)
        .count("equal sets told apart", wrong_as_sets)
        .count("normalized multisets that do not decide", wrong))
}

fn definition_3(context: &Context) -> Result<Finding> {
    let ball = |x: f64| Ball::new(x, 192);
    let (mut largest, mut points) = (0.0_f64, 0);
    for seed in 0..context.effort(40, 400) as u64 {
        for m in 1..=8 {
            let a: Vec<Ball> = vectors(&mut rng(seed), m, 1).iter().map(|x| ball(6.0 * x)).collect();
            let p =
                if context.mutated { softmax(&a.iter().map(|x| -x.clone()).collect::<Vec<_>>()) } else { softmax(&a) };
            let sum = a.iter().zip(&p).fold(Ball::zero(), |sum, (a, p)| sum + a.clone() * p);
            largest = largest.max((sum - boltz(&a)?).to_interval().magnitude());
            points += 1;
        }
    }
    Ok(Finding::printed(largest < 1e-40)
        .count("vectors", points)
        .number("largest difference", largest)
        .number("boltz(4)", float(&boltz(&[ball(4.0)])?))
        .number("boltz(0, 5)", float(&boltz(&[ball(0.0), ball(5.0)])?))
        .number("boltz(8, 6)", float(&boltz(&[ball(8.0), ball(6.0)])?)))
}

fn equation_6(context: &Context) -> Result<Finding> {
    let places = || (0..2).flat_map(|k| (0..2).map(move |l| (k, l)));
    let members = |asked: &dyn Fn(usize, usize) -> bool| {
        let grid = (0..3).flat_map(|x| (0..3).map(move |y| [x, y]));
        grid.filter(|cell| places().filter(|&(k, l)| asked(k, l)).all(|(k, l)| cell[k] != cell[l])).count()
    };
    let (printed, repaired) = (members(&|_, _| true), members(&|k, l| k != l || context.mutated && k == 1));
    Ok(Finding::repaired(printed == 6, repaired == 6)
        .count("cells for d = 1, n = 2, D = 3", 9)
        .count("members as printed", printed)
        .count("members with k ≠ l", repaired)
        .counterexample("with k = l the condition is L_{:,k} ≠ L_{:,k}: 0 of the 9 cells for d = 1, n = 2, D = 3, where 6 are meant"))
}
