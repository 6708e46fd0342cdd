//! Corollaries 1 and 2, Remarks 1 and 2.

use monolayer::data::context::Contexts;
use monolayer::data::positions::Positions;
use monolayer::memorize::paper_parameters;
use monolayer::paper::attention::Mask;
use monolayer::{AnyModel, Compiled, Dataset, Memorizer, Method, Result};
use rand::RngExt as _;
use serde_json::json;

use super::support::{dataset, pairs, rng, vectors};
use super::{Claim, Context, Finding};

pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "corollary-1",
        number: "Corollary 1, (17)",
        statement: "one rank-1 attention layer and one feed-forward block memorize any consistent dataset without duplicates",
        printed: r"\epsilon > 0, r_{\max} > r_{\min} > 0, (X^{(1)}, Y^{(1)}), \dots, (X^{(N)}, Y^{(N)}) \subset R^{d \times n} \times [C]^{d \times n}, X^{(1)}, \dots, X^{(N)} tokenwise (r_{\min}, r_{\max}, \epsilon)-separated, no duplicate token in each, Y^{(i)}_{:,k} = Y^{(j)}_{:,l} for any i, j \in [N] and k, l \in [n] such that V^{(i)} = V^{(j)} and X^{(i)}_{:,k} = X^{(j)}_{:,l} \Rightarrow there are 4(s+d) + d(2nN+d) weight parameters with F(X^{(i)}) = F^{(FF)}(F_S^{(SA)}(X^{(i)})) = Y^{(i)} (17) for any i \in [N]",
        note: "Labels are vectors of real numbers here, and (17) is shown to within the error given; remark-2-depth has equality for classes.",
        run: "all pairs of 8 vectors with random outputs, by plateaus and by a curve through all ids, in floats and proved",
        code: ("crates/monolayer/src/memorize/vectors/mod.rs", "memorize_vectors"),
        mutation: "W^(O) = 0",
        find: corollary_1,
    },
    Claim {
        id: "corollary-1-paper",
        number: "Corollary 1, proof",
        statement: "the weights of the proof memorize in real arithmetic, with (8) in the place of (47)",
        printed: r"W^{(O)} \in R^{d \times s}, W^{(V)}, W^{(K)}, W^{(Q)} \in R^{s \times d} by Theorem 2, then a one-hidden-layer F^{(FF)} that associates each of at most nN context ids with its label: F(X^{(i)}) = F^{(FF)}(F_S^{(SA)}(X^{(i)})) = Y^{(i)} (17)",
        note: "",
        run: "all pairs of four vectors in big floats, |F(X) − Y| bounded",
        code: ("crates/monolayer/src/memorize/proof_constants.rs", "memorize_paper"),
        mutation: "512 bits in the place of as many as it takes",
        find: corollary_1_paper,
    },
    Claim {
        id: "corollary-1-parameters",
        number: "Corollary 1, parameters",
        statement: "4(s+d) + d(2nN+d) parameters suffice",
        printed: r"the feed-forward layer has at most d \times (2nN + d) parameters, W^{(O)} \in R^{d \times s} and W^{(V)}, W^{(K)}, W^{(Q)} \in R^{s \times d} of rank 1 have s + d each, 4(s+d) together; at most 4(s+d) + d(2nN+d) in all",
        note: "",
        run: "the different numbers of a curve through all ids, counted",
        code: ("crates/monolayer/src/memorize/mod.rs", "paper_parameters"),
        mutation: "the factor 2n is dropped",
        find: corollary_1_parameters,
    },
    Claim {
        id: "remark-1",
        number: "Remark 1, Appendix C",
        statement: "Theorem 2 extends to masked self-attention",
        printed: r"Theorem 2 extends to masked self-attention, \sigma_S[(W_{l,i}^{(K)} Z)^T (W_{l,i}^{(Q)} Z) + C] \in R^{d \times n} (132), C \in R^{n \times n} with elements 0 or -\infty, for example for padding of inputs with different lengths",
        note: "A consequence is run: memorizing under a mask.",
        run: "memorizing under a causal mask",
        code: ("crates/monolayer/src/paper/attention.rs", "apply_masked"),
        mutation: "the model runs without its mask",
        find: remark_1,
    },
    Claim {
        id: "remark-2-contexts",
        number: "beside Remark 2",
        statement: "without duplicates a vocabulary has at most |V| 2^(|V|−1) contexts, however many sequences there are",
        printed: "",
        note: "Remark 2 gives Õ(√(nN)) parameters for |V| independent of n and N. That is true; for sequences without duplicates nN ids are then bounded, so it says little there.",
        run: "the contexts of all sets of up to six tokens, counted",
        code: ("crates/monolayer/src/data/context.rs", "Contexts"),
        mutation: "duplicates are allowed",
        find: remark_2_contexts,
    },
    Claim {
        id: "remark-2-depth",
        number: "Remark 2",
        statement: "with depth, fewer parameters than one hidden layer takes memorize the same ids",
        printed: r"at most nN context ids; linear in nN, as 4(s+d) + d(2nN+d) is, is optimal up to logarithmic factors (one hidden layer); \tilde{O}(\sqrt{nN}) with deeper feed-forward blocks, |V| independent of n and N",
        note: "The rate is a cited result and not tested, nor is the cited lower bound for one hidden layer.",
        run: "bit extraction on about a thousand ids, numbers other than 0 counted, outputs exact",
        code: ("crates/monolayer/src/memorize/deep.rs", "memorize_deep"),
        mutation: "about a hundred ids",
        find: remark_2_depth,
    },
    Claim {
        id: "corollary-2",
        number: "Corollary 2, (18)",
        statement: "with positions, sequences with repeated tokens and any order are memorized",
        printed: r"\epsilon > 0, r_{\max} > r_{\min} > 0, (X^{(1)}, Y^{(1)}), \dots, (X^{(N)}, Y^{(N)}) \subset R^{d \times n} \times [C]^{d \times n}, X^{(1)}, \dots, X^{(N)} tokenwise (r_{\min}, r_{\max}, \epsilon)-separated, Y^{(i)} = Y^{(j)} for any i, j \in [N] such that X^{(i)} = X^{(j)} \Rightarrow there are 4(s+d) + d(2nN+d) weight parameters and E \in R^{d \times n} with F(X^{(i)} + E) = F^{(FF)}(F_S^{(SA)}(X^{(i)} + E)) = Y^{(i)} (18) for any i \in [N]",
        note: "It asks for some E; the one of its proof is (48).",
        run: "all 32 sequences of five over two vectors with random classes, with positions",
        code: ("crates/monolayer/src/memorize/vectors/mod.rs", "memorize_vectors"),
        mutation: "the positions are taken off",
        find: corollary_2,
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
    let possible = memo.possible();
    let right = right(&AnyModel::from(model), &data)?;
    Ok(Finding::printed(right == possible)
        .count("tokens", data.tokens())
        .count("whose visible past allows their label", possible)
        .count("right", right))
}

fn remark_2_contexts(context: &Context) -> Result<Finding> {
    let size = context.mutate(6_u32, 3);
    let sequences: Vec<Vec<u32>> = if context.mutated {
        // All sequences of three tokens, three long.
        (0..27_u32).map(|i| vec![i % 3, i / 3 % 3, i / 9]).collect()
    } else {
        (1..1_u32 << size).map(|set| (0..size).filter(|x| set >> x & 1 == 1).collect()).collect()
    };
    let mut offsets = vec![0];
    sequences.iter().for_each(|sequence| offsets.push(offsets[offsets.len() - 1] + sequence.len()));
    let contexts = Contexts::new(&sequences.concat(), &offsets, &Mask::None, false).count;
    let most = (size << (size - 1)) as usize;
    Ok(Finding::ours(contexts <= most)
        .count("tokens", size as usize)
        .count("contexts of all sets", contexts)
        .count("|V| 2^(|V|−1)", most))
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
