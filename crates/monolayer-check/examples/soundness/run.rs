//! The comparison itself.

use monolayer_check::Precision;
use monolayer_check::big::weight::{Rational, Weight as _};
use monolayer_check::dataset::Labels;
use monolayer_check::decide::Decision;
use monolayer_check::labels::Pass;
use monolayer_check::model::{Attention, Dtype, Embedding, FeedForward, Head, Layer, Model};
use rayon::prelude::*;

use crate::floats::Program;
use crate::models::Case;
use crate::random::Random;
use crate::{bound, exact, models};

#[derive(Default, Clone, Copy)]
pub struct Tally {
    pub right: usize,
    pub wrong: usize,
    pub open: usize,
    pub exceptions: usize,
    /// Tokens whose margin is over four times the textbook bound, and how many of them stayed open.
    pub clear: usize,
    pub clear_open: usize,
}

impl Tally {
    /// Never wrong, and at most one in a hundred clear tokens left open.
    pub fn holds(&self) -> bool {
        self.exceptions == 0 && self.clear_open * 100 <= self.clear
    }

    fn plus(self, other: Self) -> Self {
        Self {
            right: self.right + other.right,
            wrong: self.wrong + other.wrong,
            open: self.open + other.open,
            exceptions: self.exceptions + other.exceptions,
            clear: self.clear + other.clear,
            clear_open: self.clear_open + other.clear_open,
        }
    }
}

/// Runs that many models through the checker in one arithmetic, and compares with programs in another (which is the same,
/// but for a test that the comparison can fail).
pub fn run(precision: Precision, programs: Precision, models: u64, seed: u64) -> Tally {
    let one = |i: u64| {
        let mut tally = Tally::default();
        let mut random = Random(seed.wrapping_mul(1_000_003).wrapping_add(i));
        let case = models::case(&mut random);
        check(&case, (precision, programs), &mut random, &mut tally, i);
        tally
    };
    (0..models).into_par_iter().map(one).reduce(Tally::default, Tally::plus)
}

fn check(
    case: &Case,
    (precision, programs): (Precision, Precision),
    random: &mut Random,
    tally: &mut Tally,
    number: u64,
) {
    let rounded = case.model.clone().rounded_to_f32().expect("small numbers");
    let model = if programs == Precision::F32 { &rounded } else { &case.model };
    let dataset = &case.dataset;
    let skip = vec![false; dataset.tokens()];
    let pass = Pass {
        model: &case.model,
        dataset,
        precision,
        exp_ulp: 4.0,
        tolerance: None,
        skip: &skip,
        first: false,
        bits: 2048,
        comfortable: 2.0,
    };
    let mut outcomes = vec![pass.run().expect("a well-formed case")];
    if (precision, programs) == (Precision::Real, Precision::Real) {
        // The same numbers once more, as text would give them.
        let Pass { exp_ulp, tolerance, first, bits, comfortable, .. } = pass;
        let model = &rationals(&case.model);
        let exact = Pass { model, dataset, precision, exp_ulp, tolerance, skip: &skip, first, bits, comfortable };
        outcomes.push(exact.run().expect("a well-formed case"));
    }
    let Labels::Classes(classes, _) = &dataset.labels else { unreachable!() };
    for i in 0..dataset.sequences() {
        let range = dataset.range(i);
        let ids = &dataset.ids[range.clone()];
        let scores: Vec<_> = exact::sequence(model, ids).iter().map(|output| exact::scores(model, output)).collect();
        let mut seen: Vec<Vec<usize>> = scores.iter().map(|s| vec![exact::arg_max(s)]).collect();
        for _ in 0..20 {
            let labels = match programs {
                Precision::F32 => Program { random, zero: 0.0_f32 }.labels(model, ids),
                Precision::F64 => Program { random, zero: 0.0_f64 }.labels(model, ids),
                Precision::Real => break,
            };
            for (seen, label) in seen.iter_mut().zip(labels) {
                seen.push(label);
            }
        }
        for (outcome, (place, t)) in outcomes.iter().flat_map(|o| range.clone().enumerate().map(move |at| (o, at))) {
            let wanted = classes[t] as usize;
            let decision = outcome.decisions[t].as_ref().expect("every token is decided");
            let exception = match decision {
                Decision::Right(_) => seen[place].iter().any(|&label| label != wanted),
                Decision::Wrong(_) => seen[place].contains(&wanted),
                Decision::Open(..) => false,
            };
            tally.right += usize::from(matches!(decision, Decision::Right(_)));
            tally.wrong += usize::from(matches!(decision, Decision::Wrong(_)));
            let open = matches!(decision, Decision::Open(..));
            tally.open += usize::from(open);
            if exception {
                tally.exceptions += 1;
                println!(
                    "exception: model {number} ({}), token {t}: {decision:?}, seen {:?}, wanted {wanted}",
                    case.kind, seen[place]
                );
            }
            let unit = match precision {
                Precision::F32 => f64::from(f32::EPSILON) / 2.0,
                _ => f64::EPSILON / 2.0,
            };
            let best = |skip: usize| {
                let others =
                    scores[place].iter().enumerate().filter(|(l, _)| *l != skip).map(|(_, s)| s.to_f64().value());
                others.fold(f64::NEG_INFINITY, f64::max)
            };
            let margin = (scores[place][wanted].to_f64().value() - best(wanted)).abs();
            if let Some(bound) = bound::bound(model, ids, place, unit, 4.0)
                && margin > 4.0 * bound
            {
                tally.clear += 1;
                tally.clear_open += usize::from(open);
            }
        }
    }
}

/// A model with its numbers as exact rationals.
fn rationals(model: &Model) -> Model<Rational> {
    let exact = |numbers: &Vec<f64>| numbers.iter().map(|&x| Rational::from_f64(x)).collect::<Vec<_>>();
    let block = |f: &FeedForward| FeedForward {
        hidden: f.hidden,
        w1: exact(&f.w1),
        b1: exact(&f.b1),
        w2: exact(&f.w2),
        b2: exact(&f.b2),
    };
    let attention = |a: &Attention| Attention {
        hard: a.hard,
        causal: a.causal,
        heads: a.heads,
        size: a.size,
        w_q: exact(&a.w_q),
        w_k: exact(&a.w_k),
        w_v: exact(&a.w_v),
        w_o: exact(&a.w_o),
    };
    let layer = |l: &Layer| Layer {
        attention: l.attention.as_ref().map(attention),
        feed_forward: l.feed_forward.as_ref().map(block),
    };
    let embedding = |e: &Embedding| Embedding { vocabulary: e.vocabulary.clone(), weight: exact(&e.weight) };
    let head = |h: &Head| Head { labels: h.labels.clone(), weight: exact(&h.weight), bias: exact(&h.bias) };
    Model {
        d: model.d,
        dtype: Dtype::Exact,
        max_length: model.max_length,
        embedding: model.embedding.as_ref().map(embedding),
        positions: model.positions.as_ref().map(exact),
        pre_feed_forward: model.pre_feed_forward.as_ref().map(block),
        layers: model.layers.iter().map(layer).collect(),
        head: model.head.as_ref().map(head),
    }
}
