//! What an accuracy is to be compared with: the word-majority baseline, and the ceiling that no model can exceed.

use monolayer::data::context::Contexts;
use monolayer::data::{Dataset, Labels};
use monolayer::paper::attention::Mask;
use serde::Serialize;

/// The accuracy on its own training set of a model that knows less than everything, at best.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ceilings {
    /// Each word's commonest label: the best without attention and positions.
    pub word_majority: f64,
    /// The best of any model without positions.
    pub without_positions: f64,
    /// The best of any model at all.
    pub with_positions: f64,
}

impl Ceilings {
    /// The ceilings of a dataset with classes as labels, as shares of the tokens that have one.
    pub fn of(data: &Dataset) -> Option<Self> {
        let Labels::Classes { label_ids: labels, .. } = &data.labels else { return None };
        let ids = data.token_ids();
        let labeled = labels.iter().flatten().count().max(1);
        let best = |contexts: &Contexts| 1.0 - contexts.agree(labels).impossible.len() as f64 / labeled as f64;
        Some(Self {
            word_majority: best(&Contexts::of_words(&ids)),
            without_positions: best(&Contexts::new(&ids, &data.offsets, &Mask::None, false)),
            with_positions: best(&Contexts::new(&ids, &data.offsets, &Mask::None, true)),
        })
    }

    /// The ceiling of a model with or without positions.
    pub fn best(&self, positions: bool) -> f64 {
        if positions { self.with_positions } else { self.without_positions }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use monolayer::data::Format;
    use monolayer::data::LabelScheme;

    #[test]
    fn each_ceiling_counts_what_it_cannot_see() {
        // "a" is X twice and Y once; the multiset {a, b} gives both; their places differ.
        let data = Dataset::read("test", Format::Conll, "a X\n\na X\nb X\n\nb X\na Y\n".as_bytes()).unwrap();
        let ceilings = Ceilings::of(&data).unwrap();
        assert_eq!(ceilings, Ceilings { word_majority: 0.8, without_positions: 0.8, with_positions: 1.0 });
        let plain = Dataset::read("test", Format::Conll, "a\n".as_bytes()).unwrap();
        assert_eq!(Ceilings::of(&plain), None);
    }

    #[test]
    fn ceilings_of_conll_2003() {
        let Some(directory) = std::env::var_os("MONOLAYER_CONLL") else {
            eprintln!("SKIPPED: set MONOLAYER_CONLL to the directory of CoNLL-2003 to test its ceilings");
            return;
        };
        let file = std::path::Path::new(&directory).join("eng.train");
        for (scheme, majority, best) in
            [(LabelScheme::AsIs, "0.9831", "0.99867"), (LabelScheme::Iob2, "0.9742", "0.99839")]
        {
            let data = scheme.apply(Dataset::open(file.to_str().unwrap()).unwrap()).unwrap();
            let ceilings = Ceilings::of(&data).unwrap();
            assert_eq!(format!("{:.4}", ceilings.word_majority), majority);
            assert_eq!(format!("{:.5}", ceilings.without_positions), best);
        }
    }
}
