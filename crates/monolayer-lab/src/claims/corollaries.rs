//! Corollaries 1 and 2, Remarks 1 and 2.

use monolayer::data::context::Contexts;
use monolayer::data::positions::Positions;
use monolayer::data::separation::separation;
use monolayer::memorize::paper_parameters;
use monolayer::paper::attention::Mask;
use monolayer::paper::counterexamples::{corollary_2_radius as smallest_outside, corollary_2_separation};
use monolayer::{AnyModel, Compiled, Dataset, Memorizer, Method, Result};
use rand::RngExt as _;
use serde_json::json;

use super::support::{dataset, pairs, rng, vectors};
use super::{Claim, Context, Finding};

pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "corollary-1",
        place: "Corollary 1",
        statement: "one rank-1 attention layer and one feed-forward block memorize any consistent dataset",
        run: "all pairs of 8 vectors with random outputs, by plateaus and by a curve through all ids, in floats and proved",
        code: ("crates/monolayer/src/memorize/vectors/mod.rs", "memorize_vectors"),
        mutation: "W_O = 0",
        find: corollary_1,
    },
    Claim {
        id: "corollary-1-paper",
        place: "Corollary 1, with the constants of its proof",
        statement: "the weights of the proof memorize in real arithmetic",
        run: "all pairs of four vectors in big floats, |F(X) - Y| bounded",
        code: ("crates/monolayer/src/memorize/paper.rs", "memorize_paper"),
        mutation: "512 bits in the place of as many as it takes",
        find: corollary_1_paper,
    },
    Claim {
        id: "corollary-1-parameters",
        place: "Corollary 1, parameters",
        statement: "4(s + d) + d(2nN + d) parameters suffice",
        run: "the different numbers of a curve through all ids, counted",
        code: ("crates/monolayer/src/memorize/mod.rs", "paper_parameters"),
        mutation: "the factor 2n is dropped",
        find: corollary_1_parameters,
    },
    Claim {
        id: "corollary-2",
        place: "Corollary 2",
        statement: "positions E keep the separation of the tokens (repaired: E_k = c k e_1, c >= 2 r_max + epsilon)",
        run: "the printed E on two numbers; the repaired one on random vocabularies",
        code: ("crates/monolayer/src/data/separation.rs", "separation"),
        mutation: "c = r_max / 2",
        find: corollary_2,
    },
    Claim {
        id: "corollary-2-radius",
        place: "Corollary 2, E",
        statement: "tokens with the printed E stay within (2n + 1) r_max",
        run: "the norms of E's columns for d = 1 to 8",
        code: ("crates/monolayer/src/data/separation.rs", "separation"),
        mutation: "d = 1 alone",
        find: corollary_2_radius,
    },
    Claim {
        id: "corollary-2-separation",
        place: "Corollary 2, E",
        statement: "the printed E keeps tokens as far apart as they were",
        run: "all pairs of vectors with entries -1, 0 and 1 at places 1 and 2, d = 1 to 4",
        code: ("crates/monolayer/src/paper/counterexamples.rs", "corollary_2_separation"),
        mutation: "d = 4 alone",
        find: corollary_2_places,
    },
    Claim {
        id: "corollary-2-memorize",
        place: "Corollary 2",
        statement: "with positions, sequences with repeated tokens and any order are memorized",
        run: "random sequences over two vectors with random labels, with and without positions",
        code: ("crates/monolayer/src/memorize/vectors/mod.rs", "memorize_vectors"),
        mutation: "the positions are taken off",
        find: corollary_2_memorize,
    },
    Claim {
        id: "remark-1",
        place: "Remark 1, Appendix C",
        statement: "the results extend to masked attention",
        run: "memorizing under a causal mask",
        code: ("crates/monolayer/src/paper/attention.rs", "apply_masked"),
        mutation: "the model runs without its mask",
        find: remark_1,
    },
    Claim {
        id: "remark-2",
        place: "Remark 2",
        statement: "N can grow with V fixed and no duplicates",
        run: "the contexts of all sets of up to six tokens, counted",
        code: ("crates/monolayer/src/data/context.rs", "Contexts"),
        mutation: "duplicates are allowed",
        find: remark_2,
    },
    Claim {
        id: "remark-2-depth",
        place: "Remark 2",
        statement: "with depth, fewer parameters than one hidden layer takes memorize the same ids",
        run: "bit extraction on about a thousand ids, numbers other than 0 counted, outputs exact",
        code: ("crates/monolayer/src/memorize/deep.rs", "memorize_deep"),
        mutation: "about a hundred ids",
        find: remark_2_depth,
    },
];

/// Tokens that come out right in floats, outputs within 1e-6.
fn right(model: &AnyModel, data: &Dataset) -> Result<usize> {
    Ok(model.right(data)?.unwrap_or(0))
}

fn memorize(data: &Dataset, method: Method, mask: Mask, positions: Positions) -> Result<Compiled> {
    Memorizer::new().method(method).mask(mask).positions(positions).candidates(24).compile(data)
}

/// A bound on `|F(X) - Y|` in real arithmetic; infinite where none was proved.
fn real_error(compiled: &Compiled) -> f64 {
    compiled.hinges().map_or(f64::INFINITY, |hinges| hinges.proof.real_error)
}

fn corollary_1(context: &Context) -> Result<Finding> {
    let data = pairs(8, 4, 6, 1)?;
    let [plateau, curve] =
        [Method::Plateau, Method::Interpolate].map(|method| memorize(&data, method, Mask::None, Positions::None));
    let (plateau, curve) = (plateau?, curve?);
    let run = |compiled: &Compiled| {
        let model = compiled.model();
        right(&if context.mutated { model.without_attention() } else { model.clone() }, &data)
    };
    let counts = [run(&plateau)?, run(&curve)?];
    let proved = real_error(&plateau).max(real_error(&curve));
    Ok(Finding::printed(counts == [data.tokens(); 2] && proved <= 1e-6)
        .count("tokens", data.tokens())
        .count("right by plateaus", counts[0])
        .count("right by a curve", counts[1])
        .number("|F(X) - Y| at most, proved", proved))
}

fn corollary_1_paper(context: &Context) -> Result<Finding> {
    let data = super::theorem_two::toy()?;
    match Memorizer::new().method(Method::Paper).max_bits(context.mutate(1 << 15, 512)).compile(&data) {
        Ok(compiled) => {
            let (bits, error) = compiled.paper().map_or((0, f64::INFINITY), |proof| (proof.bits, proof.log2_error));
            Ok(Finding::printed(error <= -64.0)
                .count("ids", compiled.context_ids())
                .count("bits", bits)
                .number("log2 of |F(X) - Y|, at most", error))
        }
        Err(error) => Ok(Finding::printed(false).counterexample(error.to_string())),
    }
}

fn corollary_1_parameters(context: &Context) -> Result<Finding> {
    let (d, s) = (4, 1);
    let data = pairs(8, d, 6, 1)?;
    let memo = memorize(&data, Method::Interpolate, Mask::None, Positions::None)?;
    let model = memo.model().widened();
    let block = model.transformer.layers[0].feed_forward.as_ref().expect("it has hidden units");
    // All rows of W1 are one vector; v, W_O and b2 are three more, and kappa is a number.
    let shared = block.w1.iter_rows().all(|row| row == block.w1.row(0));
    let used = block.b1.len() * (d + 1) + 3 * d + 1;
    let allowed = context.mutate(paper_parameters(&data, s, d), 4 * (s + d) + d * (data.sequences() + d));
    Ok(Finding::printed(shared && used <= allowed)
        .count("ids", memo.context_ids())
        .count("parameters used", used)
        .count("parameters of the paper", allowed))
}

fn corollary_2(context: &Context) -> Result<Finding> {
    // Tokens 1 and -1 with r_max = 1.001: 1 at place 1 against -1 at place 2.
    let (r_max, epsilon) = (1.001, 1.9);
    let printed: Vec<f64> = [1.0, 2.0].iter().flat_map(|k| [1.0 + 2.0 * k * r_max, -1.0 + 2.0 * k * r_max]).collect();
    let distance = separation(1, &printed).epsilon;
    let mut smallest = f64::INFINITY;
    let vocabularies = context.effort(100, 1000);
    for seed in 0..vocabularies as u64 {
        let (d, words) = (1 + seed as usize % 4, 10);
        let tokens = vectors(&mut rng(seed), words, d);
        let before = separation(d, &tokens);
        let c = context.mutate(2.0 * before.r_max + before.epsilon, before.r_max / 2.0) * (1.0 + 1e-12);
        let at = |k: usize| tokens.iter().enumerate().map(move |(i, x)| if i % d == 0 { x + c * k as f64 } else { *x });
        let after = separation(d, &(1..=5).flat_map(at).collect::<Vec<f64>>());
        smallest = smallest.min(after.epsilon / before.epsilon);
    }
    // Adding a place rounds.
    Ok(Finding::repaired(distance >= epsilon, smallest > 1.0 - 1e-9)
        .number("distance with the printed E", distance)
        .number("epsilon before", epsilon)
        .count("vocabularies with the repaired E", vocabularies)
        .number("smallest epsilon after over before", smallest)
        .counterexample("1 at place 1 and -1 at place 2, r_max = 1.001: 0.002 apart"))
}

fn corollary_2_radius(context: &Context) -> Result<Finding> {
    let (n, r_max) = (2.0, 1.0);
    let largest = |d: usize| separation(d, &vec![2.0 * n * r_max; d]).r_max;
    let dimensions = context.mutate(1..=8_usize, 1..=1);
    let norm = dimensions.map(largest).fold(0.0, f64::max);
    let example = smallest_outside().map_or(String::new(), |found| {
        format!(
            "d = {}, n = {}: a token of norm {:.3} with {:.3} claimed",
            found.token.len(),
            found.n,
            found.norm,
            found.claimed
        )
    });
    Ok(Finding::printed(norm <= (2.0 * n + 1.0) * r_max)
        .number("largest norm of a column for n = 2", norm)
        .number("claimed radius", (2.0 * n + 1.0) * r_max)
        .counterexample(example))
}

fn corollary_2_places(context: &Context) -> Result<Finding> {
    let share = |d: usize| corollary_2_separation(d).map_or(1.0, |found| found.distance / found.epsilon);
    let smallest = context.mutate(1..=4, 4..=4).map(share).fold(f64::INFINITY, f64::min);
    Ok(Finding::printed(smallest >= 1.0)
        .number("distance over epsilon, d = 1", share(1))
        .number("d = 2", share(2))
        .number("d = 3", share(3))
        .number("d = 4", share(4))
        .counterexample("d = 1: 1 at place 1 and -1 at place 2"))
}

fn corollary_2_memorize(context: &Context) -> Result<Finding> {
    let rng = &mut rng(2);
    let words = [vec![1.0, 0.5], vec![-0.5, 1.0]];
    let sequences: Vec<_> = (0..32)
        .map(|i| {
            let tokens = (0..5).map(|k| words[i >> k & 1].clone()).collect();
            (tokens, (0..5).map(|_| json!(rng.random_range(0..3))).collect())
        })
        .collect();
    let data = dataset(&sequences)?;
    let positions = context.mutate(Positions::Auto, Positions::None);
    let memo = memorize(&data, Method::Plateau, Mask::None, positions)?;
    let right = right(memo.model(), &data)?;
    Ok(Finding::printed(right == data.tokens()).count("tokens", data.tokens()).count("right", right))
}

fn remark_1(context: &Context) -> Result<Finding> {
    let data = pairs(8, 4, 6, 3)?;
    let memo = memorize(&data, Method::Plateau, Mask::Causal, Positions::None)?;
    let mut model = memo.model().widened();
    if context.mutated {
        model.transformer.layers[0].attention.as_mut().expect("it has attention").mask = Mask::None;
    }
    let possible = data.tokens() - memo.impossible().len();
    let right = right(&AnyModel::from(model), &data)?;
    Ok(Finding::printed(right == possible)
        .count("tokens", data.tokens())
        .count("whose visible past allows their label", possible)
        .count("right", right))
}

fn remark_2(context: &Context) -> Result<Finding> {
    let size = context.mutate(6_u32, 3);
    let sequences: Vec<Vec<u32>> = if context.mutated {
        // All sequences of three tokens, three long.
        (0..27_u32).map(|i| vec![i % 3, i / 3 % 3, i / 9]).collect()
    } else {
        (1..1_u32 << size).map(|set| (0..size).filter(|x| set >> x & 1 == 1).collect()).collect()
    };
    let mut offsets = vec![0];
    sequences.iter().for_each(|sequence| offsets.push(offsets[offsets.len() - 1] + sequence.len()));
    let contexts = Contexts::new(&sequences.concat(), &offsets, Mask::None, false).count;
    let most = (size << (size - 1)) as usize;
    Ok(Finding::printed(contexts > most)
        .count("tokens", size as usize)
        .count("contexts of all sets", contexts)
        .count("|V| 2^(|V|-1)", most)
        .counterexample("six tokens have 192 contexts, and no more, however many sequences there are"))
}

fn remark_2_depth(context: &Context) -> Result<Finding> {
    let words = context.mutate(32, 10);
    let rng = &mut rng(4);
    let vocabulary: Vec<Vec<f64>> = vectors(rng, words, 4).chunks_exact(4).map(<[f64]>::to_vec).collect();
    let mut label = || json!(rng.random_range(0..10));
    let pair = |(i, j): (usize, usize)| (vec![vocabulary[i].clone(), vocabulary[j].clone()], vec![label(), label()]);
    let sequences: Vec<_> = (0..words).flat_map(|i| (0..i).map(move |j| (i, j))).map(pair).collect();
    let data = dataset(&sequences)?;
    let compiled = Memorizer::new().method(Method::Deep).candidates(24).positions(Positions::None).compile(&data)?;
    let (nonzero, one_layer) = compiled.deep().map_or((0, 0), |details| (details.nonzero, details.one_layer));
    Ok(Finding::printed(nonzero < one_layer && compiled.is_proved())
        .count("ids", compiled.context_ids())
        .count("numbers other than 0, deep", nonzero)
        .count("numbers other than 0, one hidden layer", one_layer)
        .count("labels evaluated exactly", data.tokens())
        .count("right", compiled.right()))
}
