//! Corollary 1 for given vectors: tokens as they are, of any dimension, labels that are classes or vectors.
//!
//! `W_O = w` adds `w_k g` to every coordinate, so that each coordinate `x_k + w_k g` of a token after attention is an id of
//! its own for (token, context). One of them, chosen with v by search, tells all ids apart; the feed-forward block is made
//! of [`hinges`] along it.

pub(super) mod free_labels;
pub mod hinges;
pub mod interpolate;
pub(super) mod map_search;
pub(super) mod outputs;
pub mod plateau;
pub mod proof;

use dashu_ratio::RBig;

use crate::arithmetic::matrix::Matrix;
use crate::arithmetic::rational;
use crate::context_map::View;
use crate::data::context::Agreement;
use crate::data::positions::Positions;
use crate::data::token_vectors::TokenVectors;
use crate::data::{Dataset, Labels, Tokens};
use crate::error::{Error, Result};
use crate::memorize::compiled::{Compiled, Details, HingeDetails, Right};
use crate::memorize::settings::{Memorizer, Method};
use crate::model::certificate::{CertifiedData, Claim};
use crate::model::exact::{self, map_attention, map_head, map_output_head};
use crate::model::{LabelHead, Model, OutputHead, Source, Storage, Words};
use crate::paper::transformer::{Layer, Transformer};
use free_labels::with_label;
use interpolate::interpolate;
use map_search::{Map, find_map};
use outputs::{Outputs, labels_and_outputs};
use plateau::{exact_plateau, plateau};
use proof::{OutputProof, OutputProver};

/// Context ids times dimensions, at most: hinges and what is proved of them take a few hundred bytes for each.
const LARGEST: usize = 1 << 21;

/// Memorizes a dataset with plateaus or a curve in double precision: the proof of Corollary 1, in order.
pub(super) fn memorize_vectors(data: &Dataset, memorizer: &Memorizer, method: Method) -> Result<Compiled> {
    let apart = if method == Method::Plateau { Apart::Labels } else { Apart::Labeled };
    let Prepared { labels, outputs, vectors, map } = prepare(data, memorizer, apart)?;
    let view = View::new(data, &vectors, memorizer.mask.clone());
    check_size(view.contexts.count, vectors.d())?;
    let agreement = view.contexts.agree(&labels);
    let points = outputs.points(vectors.d());
    let (readout, runs) = if method == Method::Plateau {
        plateau(&map.labeled(&map.filled(&agreement), &points))
    } else {
        // The curve need not pass where any label will do.
        let contexts = with_label(&agreement.label);
        let some = |rows: &Matrix<f64>, row: &dyn Fn(usize) -> usize| {
            Matrix::from_fn(contexts.len(), rows.cols, |i, k| rows.row(row(contexts[i]))[k])
        };
        let targets = some(&points, &|context| agreement.label[context].unwrap_or(0) as usize);
        (interpolate(&some(&map.rows, &|context| context), map.coordinate, &targets), contexts.len())
    };
    let attention = map.attention(memorizer.mask.clone());
    let layers = vec![Layer { attention: Some(attention.clone()), feed_forward: Some(readout.block()) }];
    let certified = CertifiedData::new(data, agreement.impossible.len());
    let heads = (outputs.head(&points), outputs.output_head(vectors.d()));
    let model = assemble(data, &vectors, layers, heads, memorizer.source(data, certified.hash(), method));
    let prover = OutputProver {
        view: &view,
        attention: &attention,
        readout: &readout,
        label: &agreement.label,
        points: &points,
        head: model.head.as_ref(),
        chosen: model.outputs.is_some(),
        exact_ids: method == Method::Interpolate,
    };
    let proof = prover.prove()?;
    if !proof.real_error.is_finite() {
        return Err(Error::too_large(
            "the numbers of this dataset, or their products, overflow double precision",
            "scale the vectors to a size near 1",
        ));
    }
    let proved = proved(&view, &agreement, &proof);
    let context_ids = view.contexts.of_token.iter().map(|&c| map.rows.row(c as usize)[map.coordinate]).collect();
    Ok(Compiled {
        method,
        claims: claims(data, &agreement, &proved, &proof).into_iter().chain(Claim::ranks(&model)).collect(),
        model: model.into(),
        data: certified,
        right: Right::new(data, &proved),
        proved,
        gap: map.gap,
        context_ids: view.contexts.count,
        impossible: agreement.impossible,
        free: agreement.free,
        details: Details::Hinges(HingeDetails { context_ids, runs, proof }),
        storage: Storage::Auto,
        names: None,
    })
}

fn check_size(contexts: usize, d: usize) -> Result<()> {
    if contexts * d <= LARGEST {
        return Ok(());
    }
    Err(Error::too_large(
        format!("{contexts} ids in {d} dimensions are too many for this method"),
        "for words with classes use `method` gated, or an `embedding` of fewer dimensions",
    ))
}

/// The tokens whose label is possible and proved in double precision.
fn proved(view: &View, agreement: &Agreement, proof: &OutputProof) -> Vec<bool> {
    let mut proved: Vec<bool> = view.contexts.of_token.iter().map(|&context| proof.certain(context)).collect();
    agreement.impossible.iter().chain(&agreement.free).for_each(|&t| proved[t] = false);
    proved
}

/// Classes are claimed as labels, vectors as outputs.
fn claims(data: &Dataset, agreement: &Agreement, proved: &[bool], proof: &OutputProof) -> Vec<Claim> {
    if agreement.possible == 0 {
        return Vec::new();
    }
    if let Labels::Classes { .. } = data.labels {
        let listed = |list: &[usize], t: usize| list.binary_search(&t).is_ok();
        let open: Vec<usize> = (0..proved.len())
            .filter(|&t| !proved[t] && !listed(&agreement.impossible, t) && !listed(&agreement.free, t))
            .collect();
        let right = agreement.possible - open.len();
        return vec![Claim::labels("f64", data, right, &open, proof.smallest_ratio())];
    }
    vec![Claim::outputs("real", proof.real_error), Claim::outputs("f64", proof.float_error)]
}

/// Plateaus with rational weights: evaluated by [`crate::model::exact`], outputs are equal to the labels.
pub(super) fn memorize_exactly(data: &Dataset, memorizer: &Memorizer) -> Result<Compiled> {
    let Prepared { labels, outputs, vectors, map } = prepare(data, memorizer, Apart::Labels)?;
    let agreement = View::new(data, &vectors, memorizer.mask.clone()).contexts.agree(&labels);
    let points = outputs.points(vectors.d());
    let block = exact_plateau(&map.labeled(&map.filled(&agreement), &points));
    let attention = Some(map_attention(&map.attention(memorizer.mask.clone()), |&x| rational(x)));
    let layers = vec![Layer { attention, feed_forward: Some(block) }];
    let certified = CertifiedData::new(data, agreement.impossible.len());
    let heads = exact_heads(&outputs, &points);
    let model = assemble(data, &vectors, layers, heads, memorizer.source(data, certified.hash(), Method::Plateau));
    compiled_exactly(data, certified, model, agreement, map.gap, (Method::Plateau, Details::Exact))
}

/// The heads of labels that are points, over the rationals.
pub(super) fn exact_heads(outputs: &Outputs, points: &Matrix<f64>) -> Heads<RBig> {
    let exact = |x: &f64| rational(*x);
    let labels = outputs.head(points).map(|head| map_head(&head, exact));
    (labels, outputs.output_head(points.cols).map(|head| map_output_head(&head, exact)))
}

/// A model with rational weights, and what exact arithmetic says of it.
pub(super) fn compiled_exactly(
    data: &Dataset,
    certified: CertifiedData,
    model: Model<RBig>,
    agreement: Agreement,
    gap: f64,
    (method, details): (Method, Details),
) -> Result<Compiled> {
    let proved = exactly_right(data, &model, &agreement)?;
    let claim = match data.labels {
        Labels::Classes { .. } => {
            Claim::labels("real", data, proved.iter().filter(|&&proved| proved).count(), &[], 1.0)
        }
        _ => Claim::outputs("real", 0.0),
    };
    // Where nothing is asked, nothing is claimed.
    let claims = if agreement.possible == 0 { Vec::new() } else { vec![claim] };
    Ok(Compiled {
        method,
        model: model.into(),
        claims,
        data: certified,
        right: Right::new(data, &proved),
        proved,
        gap,
        context_ids: agreement.label.len(),
        impossible: agreement.impossible,
        free: agreement.free,
        details,
        storage: Storage::Auto,
        names: None,
    })
}

/// The possible tokens whose label comes out exactly.
fn exactly_right(data: &Dataset, model: &Model<RBig>, agreement: &Agreement) -> Result<Vec<bool>> {
    let mut right: Vec<bool> = match &data.labels {
        Labels::Classes { label_ids: ids, .. } => {
            exact::labels(model, data)?.iter().zip(ids).map(|(found, label)| Some(*found) == *label).collect()
        }
        Labels::Vectors { d, data: wanted } => {
            let equal = |(found, wanted): (&Vec<RBig>, &[f64])| {
                found.iter().zip(wanted).all(|(found, &wanted)| *found == rational(wanted))
            };
            exact::outputs(model, data)?.iter().zip(wanted.chunks_exact(*d)).map(equal).collect()
        }
        Labels::None => Vec::new(),
    };
    agreement.impossible.iter().for_each(|&t| right[t] = false);
    Ok(right)
}

/// What every method starts from.
pub(super) struct Prepared<'a> {
    /// The number of each token's label; none where any will do.
    pub labels: Vec<Option<u32>>,
    /// What labels are as outputs.
    pub outputs: Outputs<'a>,
    /// The tokens.
    pub vectors: TokenVectors,
    /// The contextual map.
    pub map: Map,
}

/// Which contexts a contextual map is to tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Apart {
    /// Those with different labels.
    Labels,
    /// Any two that have a label.
    Labeled,
    /// Any two.
    All,
}

impl Apart {
    /// The class of each context: contexts of different classes are told apart, those without one from none.
    fn classes(self, label: Vec<Option<u32>>) -> Vec<Option<u32>> {
        match self {
            Self::Labels => label,
            Self::Labeled => (0..).zip(label).map(|(context, label)| label.map(|_| context)).collect(),
            Self::All => (0..label.len() as u32).map(Some).collect(),
        }
    }
}

/// Tokens, and the contextual map that tells contexts apart.
pub(super) fn prepare<'a>(data: &'a Dataset, memorizer: &Memorizer, apart: Apart) -> Result<Prepared<'a>> {
    let (labels, outputs) = labels_and_outputs(data)?;
    let attempt = |positions: &Positions| -> Result<(TokenVectors, Map)> {
        let vectors = token_vectors(data, memorizer, positions, &outputs)?;
        let view = View::new(data, &vectors, memorizer.mask.clone());
        let class = apart.classes(view.contexts.agree(&labels).label);
        let map = find_map(data, &view, &class, memorizer)?;
        Ok((vectors, map))
    };
    let positions = memorizer.positions_for(data, &labels);
    let (vectors, map) = match attempt(&positions) {
        // Ids that coincide without positions: a zero vector sees the mean of its sequence only, for example.
        Err(_) if memorizer.positions == Positions::Auto && positions == Positions::None => attempt(&Positions::Auto)?,
        result => result?,
    };
    Ok(Prepared { labels, outputs, vectors, map })
}

/// Tokens with room for the outputs: words get coordinates that are 0.
pub(super) fn token_vectors(
    data: &Dataset,
    memorizer: &Memorizer,
    positions: &Positions,
    outputs: &Outputs,
) -> Result<TokenVectors> {
    let new = |extra| TokenVectors::new(data, &memorizer.embedding, positions, extra, memorizer.seed);
    let (vectors, k) = (new(0)?, outputs.dimension());
    let d = vectors.d();
    if k <= d {
        return Ok(vectors);
    }
    if let Tokens::Vectors { .. } = data.tokens {
        let what = format!("labels of dimension {k} for tokens of dimension {d}: a Transformer has room for d numbers");
        return Err(Error::mismatch(
            what,
            format!("append zeros to every token, {} in all, as later to those to predict", k - d),
        ));
    }
    new(k - d)
}

/// What turns outputs into labels, and what into outputs of another dimension.
pub(super) type Heads<T> = (Option<LabelHead<T>>, Option<OutputHead<T>>);

/// Tokens, layers and heads as one model, over the floats or the rationals.
pub(super) fn assemble<T: From64>(
    data: &Dataset,
    vectors: &TokenVectors,
    layers: Vec<Layer<T>>,
    (head, outputs): Heads<T>,
    source: Source,
) -> Model<T> {
    let lift = |m: &Matrix<f64>| m.map(|&x| T::from_f64(x));
    let words = match &data.tokens {
        Tokens::Words { vocabulary, .. } => {
            Some(Words { vocabulary: vocabulary.clone(), embedding: lift(&vectors.words), start: None })
        }
        Tokens::Vectors { .. } => None,
    };
    let transformer = Transformer { d: vectors.d(), pre_feed_forward: None, layers };
    Model { words, positions: vectors.positions.as_ref().map(lift), transformer, head, outputs, source }
}

/// Numbers of a model that hold every float.
pub(super) trait From64: Clone {
    /// The number `x`, exactly.
    fn from_f64(x: f64) -> Self;
}

impl From64 for f64 {
    fn from_f64(x: f64) -> Self {
        x
    }
}

impl From64 for RBig {
    fn from_f64(x: f64) -> Self {
        rational(x)
    }
}
