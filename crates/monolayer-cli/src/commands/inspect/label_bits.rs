//! Remark 2 from below: the bits of the labels beside the bits of the model.

use std::path::Path;

use monolayer::memorize::{LabelCounts, least_parameters};
use monolayer::model::directory::Config;
use monolayer::{AnyModel, Dataset, Error, Mask, Result};
use serde_json::{Value, json};

use crate::output::{count, table};

/// The bits of a dataset's labels, and of a model for it.
pub struct LabelBits {
    counts: LabelCounts,
    /// Numbers of the model, and those that are not 0.
    numbers: [usize; 2],
    /// Bits of a number; exact numbers have no fixed size.
    width: Option<usize>,
    /// Bits of all numbers, each in the model's dtype, or as exact ones are written.
    stored: usize,
}

impl LabelBits {
    /// Those of the data given, else of the data that was memorized; nothing where neither is known.
    pub fn new(
        dir: &Path,
        model: &AnyModel,
        config: &Config,
        numbers: [usize; 2],
        data: Option<&Dataset>,
    ) -> Result<Option<Self>> {
        let counts = match data {
            Some(data) => match only_mask(model) {
                Some(mask) => LabelCounts::with_start(model.start_in(data), data, &mask, config.max_length.is_some())?,
                None => None,
            },
            None => model.source().label_counts().copied(),
        };
        let Some(counts) = counts else { return Ok(None) };
        let width = match config.dtype.as_str() {
            "f32" => Some(32),
            "f64" => Some(64),
            _ => None,
        };
        let stored = match width {
            Some(width) => numbers[0] * width,
            None => 8 * size(&dir.join("weights.json"))?,
        };
        Ok(Some(Self { counts, numbers, width, stored }))
    }

    /// The fewest numbers of the model's kind for any labels of the contexts, and given the words' labels.
    fn least(&self) -> Option<[usize; 2]> {
        let bits = [self.counts.bits_of_contexts(), self.counts.bits_given_words()];
        self.width.map(|width| bits.map(|bits| least_parameters(bits, width)))
    }

    pub fn json(&self) -> Value {
        let [any, given] = self.least().map_or([None; 2], |least| least.map(Some));
        json!({
            "tokens": self.counts.tokens,
            "classes": self.counts.classes,
            "contexts": self.counts.contexts,
            "deviating": self.counts.deviating,
            "labels": self.counts.bits(),
            "contexts_labels": self.counts.bits_of_contexts(),
            "given_words": self.counts.bits_given_words(),
            "bits_per_number": self.width,
            "stored": self.stored,
            "stored_nonzero": self.width.map(|width| width * self.numbers[1]),
            "least_parameters": any,
            "least_parameters_given_words": given,
        })
    }

    pub fn text(&self) -> String {
        let counts = &self.counts;
        let row = |name: &str, bits: f64, note: String| vec![name.to_owned(), count(bits.ceil() as usize), note];
        let labels = format!("{} tokens times log2 of {} labels", count(counts.tokens), count(counts.classes));
        let contexts = format!("{} contexts times log2 of {}", count(counts.contexts), count(counts.classes));
        let given = format!(
            "which {} contexts deviate from their word's commonest label, and to what",
            count(counts.deviating)
        );
        let mut rows = vec![
            row("bits of the labels", counts.bits(), labels),
            row("  of any labels of its contexts", counts.bits_of_contexts(), contexts),
            row("  given each word's label", counts.bits_given_words(), given),
        ];
        match (self.width, self.least()) {
            (Some(width), Some([any, given])) => {
                let [all, nonzero] = self.numbers;
                let of = |n: usize| format!("{} numbers of {width} bits", count(n));
                rows.push(row("bits stored", self.stored as f64, of(all)));
                rows.push(row("  not zero", (width * nonzero) as f64, of(nonzero)));
                let note = |what: &str| format!("numbers of {width} bits that can take {what}, by counting");
                let least = |name: &str, n: usize, what: &str| vec![name.to_owned(), count(n), note(what)];
                rows.push(least("parameters, at least", any, "any labels of the contexts"));
                rows.push(least("  given each word's label", given, "any such deviations"));
            }
            _ => rows.push(row("bits stored", self.stored as f64, "weights.json, whose numbers are text".to_owned())),
        }
        table(&rows, &[2])
    }
}

/// The mask of a model with one attention layer: behind several, contexts are others than the first layer's.
fn only_mask(model: &AnyModel) -> Option<Mask> {
    let widened = model.widened();
    let mut attentions = widened.transformer.layers.iter().filter_map(|layer| layer.attention.as_ref());
    let first = attentions.next()?;
    attentions.next().is_none().then(|| first.mask.clone())
}

fn size(path: &Path) -> Result<usize> {
    std::fs::metadata(path).map(|file| file.len() as usize).map_err(|e| Error::io(path, e))
}
