//! One label per sequence, as in classification.

use std::str::FromStr;

use super::class_name::ClassName;
use super::{Dataset, Labels, Names, Vocabulary, Written};
use crate::error::{Error, Location, Result};

/// Which tokens of a sequence get its label; for the others any label will do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LabelAt {
    /// All of them.
    #[default]
    All,
    /// The first.
    First,
    /// The last.
    Last,
}

impl FromStr for LabelAt {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "all" => Ok(Self::All),
            "first" => Ok(Self::First),
            "last" => Ok(Self::Last),
            _ => Err(Error::setting(format!("{name:?} is no place for a label"), "use all, first or last")),
        }
    }
}

impl Dataset {
    /// The same sequences with one label each, in place of any labels there are.
    ///
    /// ```
    /// use monolayer::data::{Dataset, LabelAt};
    ///
    /// let data = Dataset::from_sequences(&[["good", "film"], ["bad", "film"]], &[[""; 2]; 2])?;
    /// let data = data.with_sequence_labels(&["praise", "blame"], LabelAt::Last)?;
    /// assert_eq!((data.free(), data.label(1), data.label(3)), (2, Some("praise"), Some("blame")));
    /// # Ok::<(), monolayer::Error>(())
    /// ```
    pub fn with_sequence_labels<C: ClassName>(self, labels: &[C], at: LabelAt) -> Result<Self> {
        if labels.len() != self.sequences() {
            let what = format!("{} labels for {} sequences", labels.len(), self.sequences());
            return Err(Error::data(Location::file(&self.name), what, "give every sequence one label"));
        }
        let mut names = Vocabulary::default();
        let mut label_ids = vec![None; self.tokens()];
        for (range, label) in self.ranges().zip(labels) {
            let places = match at {
                LabelAt::All => range,
                LabelAt::First => range.start..range.start + 1,
                LabelAt::Last => range.end - 1..range.end,
            };
            label_ids[places].fill(label.class_name().map(|name| names.add(name)));
        }
        let written = Written { labels: Names::Strings, ..self.written };
        Ok(Self { labels: Labels::Classes { label_ids, names }, written, ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_gets_the_label_of_its_sequence() {
        let data = || Dataset::from_sequences(&[vec!["a", "b", "c"], vec!["d"]], &[vec!["x"; 3], vec!["x"]]).unwrap();
        let labels = |at: &str| {
            let data = data().with_sequence_labels(&[Some("X"), None], at.parse().unwrap()).unwrap();
            (0..4).map(|t| data.label(t).map(str::to_owned)).collect::<Vec<_>>()
        };
        let x = || Some("X".to_owned());
        assert_eq!(labels("all"), [x(), x(), x(), None]);
        assert_eq!(labels("first"), [x(), None, None, None]);
        assert_eq!(labels("last"), [None, None, x(), None]);
        let error = data().with_sequence_labels(&["X"], LabelAt::All).unwrap_err().to_string();
        assert!(error.contains("1 labels for 2 sequences"), "{error}");
        assert!("middle".parse::<LabelAt>().is_err());
    }
}
