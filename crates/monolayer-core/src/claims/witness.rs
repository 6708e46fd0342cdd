//! Sequences that show that a claim about two models is false. They are looked for, not enumerated: finding none says nothing.

use super::difference::{Changes, Named, name, named, vectors};
use crate::model::Model;
use crate::number::{Dyadic, Format};
use crate::rules::attention::{Seen, project};
use crate::rules::ball::Ball;
use crate::rules::judge::{Inputs, Judge, Vectors};
use crate::rules::network::Network;
use crate::rules::sum::{Arithmetic, Term, real_sum};
use crate::rules::two_models::TwoModels;

/// Words that stand before a token in a sequence: so many different ones are tried, and so many mixtures of the two extreme ones.
const FILLERS: usize = 12;
const MIXTURES: usize = 48;
/// Products of a weight and a number that looking at sequences of one token may take.
const WORK: usize = 1 << 28;

/// A search among sequences that end with a token.
pub(super) struct Search<'a> {
    pub models: &'a TwoModels<'a>,
    pub changes: &'a Changes,
    pub model: &'a Model,
    /// The most tokens of a sequence.
    pub length: usize,
}

impl Search<'_> {
    /// A sequence in which a word at a place certainly gets other scores or another label than the changes allow, in words.
    pub fn find(&self, word: usize, place: usize) -> Option<String> {
        let start = usize::from(self.model.start.is_some());
        let lengths = if self.model.positions.is_some() { vec![place - start] } else { vec![0, 1, 2, 3, 7, 31] };
        let lengths: Vec<usize> = lengths.into_iter().filter(|before| *before < self.length).collect();
        let longest = *lengths.last()?;
        let order = self.by_value(longest)?;
        let x = self.models.input(word, place)?;
        let open = self.models.open(word, place);
        for before in lengths.iter().flat_map(|length| fillers(&order, *length)) {
            let Some(z) = self.reads(&before, word) else { continue };
            let named: Vec<&Named> = named(self.changes, word, place).collect();
            if let Some(what) = self.fault(&x, z, &open, &named) {
                let all: Vec<&str> = before.iter().chain([&word]).map(|row| name(self.model, *row)).collect();
                return Some(format!("the last token of {:?}: {what}", all.join(" ")));
            }
        }
        None
    }

    /// Rows of words, those first whose value is least.
    fn by_value(&self, longest: usize) -> Option<Vec<usize>> {
        if longest == 0 {
            return Some(vec![]);
        }
        let values = &self.models.networks[0].blocks[0].attention.as_ref()?.w_v;
        let value =
            |x: &Vec<Dyadic>| real_sum(values.weights(0).map(|(c, w)| Term::weighted(w, Ball::exact(x[c])))).middle();
        let mut order: Vec<(usize, Ball)> = self.models.words.iter().map(value).enumerate().collect();
        order.sort_by(|(_, a), (_, b)| match (a.is_below(*b), b.is_below(*a)) {
            (true, _) => std::cmp::Ordering::Less,
            (_, true) => std::cmp::Ordering::Greater,
            _ => std::cmp::Ordering::Equal,
        });
        Some(order.into_iter().map(|(row, _)| row).collect())
    }

    /// What the head reads for a word behind some others.
    fn reads(&self, before: &[usize], word: usize) -> Option<Ball> {
        let network = self.models.networks[0];
        let all: Vec<usize> = self.model.start.into_iter().chain(before.iter().copied()).chain([word]).collect();
        let tokens =
            all.iter().enumerate().map(|(place, row)| self.models.input(*row, place)).collect::<Option<Vec<_>>>()?;
        let layer = network.blocks[0].attention.as_ref()?;
        let seen = Seen::new(&layer.mask, all.len() - 1, all.len(), network.start);
        project(network.arithmetic, layer, &tokens)?
            .read(network.arithmetic, layer, all.len() - 1, &seen)?
            .first()
            .copied()
    }

    /// What is certainly wrong where the head reads something within z.
    fn fault(&self, x: &[Ball], z: Ball, open: &crate::rules::two_models::Open, named: &[&Named]) -> Option<String> {
        let labels = self.model.head.as_ref()?.labels.as_ref()?;
        if named.is_empty() {
            let scores = self.models.outputs(x, z, open)?;
            return differing(self.models.networks, [&scores[0], &scores[1]]).map(|l| other_scores(&labels[l]));
        }
        let [a, b] = self.models.labels(x, z, open)?;
        let (&[a], &[b]) = (&a[..], &b[..]) else { return None };
        let allowed = |change: &&&Named| {
            let numbers = self.models.places_within(z);
            change.ends.0 <= numbers.1 && numbers.0 <= change.ends.1 && change.labels.is_none_or(|pair| pair == (a, b))
        };
        (a != b && !named.iter().any(|change| allowed(&change))).then(|| other_labels(&labels[a], &labels[b]))
    }
}

/// Words that may stand before the token, so many.
fn fillers(order: &[usize], length: usize) -> Vec<Vec<usize>> {
    if length == 0 {
        return vec![vec![]];
    }
    let (n, most) = (order.len() - 1, MIXTURES.min(length));
    let mut all: Vec<Vec<usize>> = (0..=FILLERS).map(|i| vec![order[i * n / FILLERS]; length]).collect();
    for i in 1..most {
        let few = i * length / most;
        let one = |j: usize| if j < few { order[0] } else { order[n] };
        all.push((0..length).map(one).collect());
    }
    all
}

fn other_scores(label: &str) -> String {
    format!("no change names it, and the scores of {label:?} differ")
}

fn other_labels(a: &str, b: &str) -> String {
    format!("its label changes from {a:?} to {b:?}, and no change says so")
}

/// A label, or an output, whose scores certainly differ.
fn differing(networks: [&Network; 2], outputs: [&[Ball]; 2]) -> Option<usize> {
    let rows = |m: usize| networks[m].head.as_ref().map_or(outputs[m].len(), |head| head.0.rows());
    (0..rows(0).min(rows(1))).find(|&l| {
        let [a, b] = [0, 1].map(|m| networks[m].score(l, outputs[m]));
        let (Some(a), Some(b)) = (a, b) else { return false };
        let (a, b) = (a.computed(), b.computed());
        a.is_below(b) || b.is_below(a)
    })
}

/// A sequence of one token that shows that the claim is false, for models of any kind that read words; in words.
pub(super) fn one_token(models: [&Model; 2], format: Format, changes: &Changes) -> Option<String> {
    let arithmetic = Arithmetic::Float { format, exp_ulp: 4 };
    let words = models.map(|model| vectors(model, arithmetic));
    let [Some(old), Some(new)] = words else { return None };
    let networks = [Network::new(models[0], arithmetic)?, Network::new(models[1], arithmetic)?];
    let labels = models.map(|model| model.head.as_ref().and_then(|head| head.labels.as_ref()));
    let comparable = models[0].d == models[1].d && labels[0] == labels[1];
    if !comparable
        || models.iter().any(|model| model.max_length.is_some_and(|n| n <= usize::from(model.start.is_some())))
    {
        return None;
    }
    let place = usize::from(models[0].start.is_some() && models[0].positions.is_some());
    let rows = |word: &(String, usize)| {
        let other = models[1].vocabulary.as_ref()?;
        Some((word.1, other[other.binary_search_by(|(own, _)| own.cmp(&word.0)).ok()?].1))
    };
    let mut rows: Vec<(usize, usize)> = models[0].vocabulary.iter().flatten().filter_map(rows).collect();
    // Words whose vectors differ come first.
    rows.sort_by_key(|(a, b)| (old[*a] == new[*b], *a));
    let each: usize =
        networks.iter().flat_map(|network| &network.blocks).map(|block| (block.hidden() + 1) * models[0].d).sum();
    for (a, b) in rows.into_iter().take(16.max(WORK / each.max(1))) {
        if named(changes, a, place).next().is_some() {
            continue;
        }
        let outputs = [(0, &old, a), (1, &new, b)].map(|(m, words, row): (usize, &Vec<Vec<Dyadic>>, usize)| {
            let start = models[m].start.map(|row| words[row].clone());
            let vectors = Vectors::Given(&words[row..=row]);
            let inputs = Inputs { vectors, ids: &[0], offsets: &[0, 1], start };
            Judge { network: &networks[m], inputs: &inputs }.outputs(0)?.pop()
        });
        let [Some(y), Some(other)] = outputs else { continue };
        if let Some(l) = differing([&networks[0], &networks[1]], [&y, &other]) {
            let what = labels[0].map_or("outputs differ".to_owned(), |labels| other_scores(&labels[l]));
            return Some(format!("the sequence {:?}: {what}", name(models[0], a)));
        }
    }
    None
}
