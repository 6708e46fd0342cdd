//! Section 5, and the number of layers: what is run on a corpus.

use monolayer::Memorizer;
use monolayer::data::context::Contexts;
use monolayer::data::word_majority;
use monolayer::paper::attention::Mask;
use monolayer::{AnyModel, Dataset, Error, Location, Matrix, Result};
use monolayer_train::{Architecture, Batch, Engine, Optimizer, Targets, Tokens};

use super::{Claim, Context, Finding};

pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "section-5-memorize",
        number: "Corollaries 1 and 2, on a corpus",
        statement: "one rank-1 attention layer can memorize the labels of a corpus, as far as contexts allow",
        printed: r"F(X^{(i)}) = F^{(FF)}(F_S^{(SA)}(X^{(i)})) = Y^{(i)} (17), F(X^{(i)} + E) = F^{(FF)}(F_S^{(SA)}(X^{(i)} + E)) = Y^{(i)} (18) for any i \in [N]",
        note: "Section 5 trains such layers; this one is compiled.",
        run: "the corpus compiled and run: every possible token right",
        code: ("crates/monolayer/src/memorize/mod.rs", "compile"),
        mutation: "W^(O) = 0",
        find: memorize,
    },
    Claim {
        id: "section-5-words",
        number: "beside section 5, Figure 1",
        statement: "the labels of a corpus cannot be had from its words alone",
        printed: "",
        note: "Section 5: CoNLL-2003, batches of 32, 400 epochs, 1, 3 and 6 layers without layer normalization; one layer reaches 0.9872 after 800 epochs.",
        run: "each word's majority label against what contexts allow, with and without positions",
        code: ("crates/monolayer/src/data/word_majority.rs", "word_majority"),
        mutation: "a context is its word alone",
        find: words,
    },
    Claim {
        id: "section-5-train",
        number: "beside section 5, Figure 1",
        statement: "trained by gradient descent, one rank-1 layer gets more tokens right than words alone allow",
        printed: "",
        note: "",
        run: "the corpus (the embedded one, where another is large) trained on for 400 steps of Adam, all of it at once",
        code: ("crates/monolayer-train/src/engine.rs", "step"),
        mutation: "every token is a sequence of its own",
        find: train,
    },
    Claim {
        id: "section-3-layers",
        number: "section 3.2, footnote 1",
        statement: "one attention layer of rank 1 does what took Yun et al. |V|^d + 1 layers and Kim et al. 2n",
        printed: r"contextual mappings of |V|^d + 1 self-attention layers (Yun et al.; footnote 1: \delta^{-d} layers for a range quantized into 1/\delta pieces, 0 < \delta < 1) and of 2n (Kim et al.)",
        note: "Their numbers are cited, not run.",
        run: "the attention layers of the compiled corpus, counted, and the rank of their weights",
        code: ("crates/monolayer/src/model/rank.rs", "rank"),
        mutation: "a second row that is no multiple of the first",
        find: layers,
    },
];

/// The labels of the corpus.
fn labels(data: &Dataset) -> Result<Vec<Option<u32>>> {
    data.label_ids().ok_or_else(|| {
        Error::data(
            Location::file(&data.name),
            "no labels",
            "claims about corpora need a corpus with classes as labels",
        )
    })
}

/// Tokens that a model gets right.
fn right(model: &AnyModel, data: &Dataset) -> Result<usize> {
    Ok(model.right(data)?.unwrap_or(0))
}

fn memorize(context: &Context) -> Result<Finding> {
    let data = &context.data;
    let compiled = Memorizer::new().compile(data)?;
    let model = if context.mutated { compiled.model().without_attention() } else { compiled.model().clone() };
    let (possible, right) = (compiled.possible(), right(&model, data)?);
    Ok(Finding::printed(right == possible)
        .count("tokens", data.tokens())
        .count("possible", possible)
        .count("right", right)
        .count("hidden units", model.config().layers[0].hidden - compiled.spare()))
}

fn words(context: &Context) -> Result<Finding> {
    let data = &context.data;
    let (ids, labels) = (data.token_ids(), labels(data)?);
    let possible = |contexts: &Contexts| contexts.agree(&labels).possible;
    let with_context = |positions: bool| {
        if context.mutated {
            Contexts::of_words(&ids)
        } else {
            Contexts::new(&ids, &data.offsets, &Mask::None, positions)
        }
    };
    let (without, with) = (possible(&with_context(false)), possible(&with_context(true)));
    let by_word = possible(&Contexts::of_words(&ids));
    let share = |count: usize| count as f64 / (data.tokens() - data.free()) as f64;
    Ok(Finding::ours(by_word < without && by_word < with)
        .number("by words alone", word_majority(data, data).unwrap_or(f64::NAN))
        .number("contexts without positions allow", share(without))
        .number("contexts with positions allow", share(with))
        .number("the paper's accuracy on CoNLL-2003 after 800 epochs", 0.9872))
}

/// Tokens that are trained on unless a full run is asked for.
const FEW: usize = 5000;

fn train(context: &Context) -> Result<Finding> {
    let embedded;
    let data = if context.data.tokens() <= FEW || context.full {
        &context.data
    } else {
        embedded = crate::example::dataset()?;
        &embedded
    };
    let (ids, labels) = (data.token_ids(), labels(data)?);
    let every_token: Vec<usize> = (0..=data.tokens()).collect();
    let offsets = context.mutate(&data.offsets[..], &every_token[..]);
    let count = |ids: &[u32]| ids.iter().max().map_or(0, |&id| id as usize + 1);
    let architecture = Architecture {
        words: Some(count(&ids)),
        dim: 32,
        layers: 1,
        hidden: 128,
        heads: 1,
        head_size: 1,
        tied: true,
        causal: false,
        positions: None,
        layer_norm: false,
        labels: Some(labels.iter().flatten().max().map_or(0, |&id| id as usize + 1)),
    };
    let mut engine = Engine::<f32>::new(architecture, Optimizer::default(), None, 0);
    let batch = Batch { offsets, tokens: Tokens::Words(&ids), targets: Targets::Labels(&labels) };
    let mut best = 0;
    for _ in 0..400 {
        let diverged = |error| Error::undefined(format!("training failed: {error}"), "this is a finding, too");
        best = best.max(engine.step(&batch, 1e-2).map_err(diverged)?.right);
    }
    let by_word = Contexts::of_words(&ids).agree(&labels).possible;
    let allowed = Contexts::new(&ids, &data.offsets, &Mask::None, false).agree(&labels).possible;
    Ok(Finding::ours(best > by_word)
        .count("tokens", data.tokens())
        .count("right by words alone", by_word)
        .count("right after training, at best", best)
        .count("contexts without positions allow", allowed))
}

fn layers(context: &Context) -> Result<Finding> {
    let data = &context.data;
    let compiled = Memorizer::new().compile(data)?;
    let model = compiled.model().widened();
    let attention: Vec<_> = model.transformer.layers.iter().filter_map(|layer| layer.attention.as_ref()).collect();
    let rank = |m: &Matrix<f64>| {
        let mut data = m.data.clone();
        if context.mutated {
            let mut row = data.clone();
            row[0] += 1.0;
            data.extend(row);
        }
        monolayer::model::rank::rank(m.cols, &data)
    };
    let head = &attention[0].heads[0];
    let rank = [&head.w_q, &head.w_k, &head.w_v, &head.w_o].map(rank).into_iter().fold(0, usize::max);
    let (layers, d) = (attention.len(), head.w_k.cols as f64);
    let mut words = data.token_ids();
    words.sort_unstable();
    words.dedup();
    Ok(Finding::printed(layers == 1 && rank == 1)
        .count("attention layers", layers)
        .count("largest rank", rank)
        .number("log10 of the layers of Yun et al., |V|^d + 1", d * (words.len() as f64).log10())
        .count("layers of Kim et al.", 2 * data.longest()))
}
