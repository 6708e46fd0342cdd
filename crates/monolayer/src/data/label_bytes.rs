//! How many bytes the labels of a dataset take, compressed as a general program compresses them.

use std::fmt::Write as _;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::free_label::FREE_NAME;
use super::{Dataset, Labels};

impl Dataset {
    /// The bytes of its labels in gzip, at the best level: a label per line, `_` where any will do, a blank line between
    /// sequences. Nothing for data without classes.
    ///
    /// ```
    /// let data = monolayer::Dataset::from_sequences(&[vec!["a"; 1000]], &[vec!["X"; 1000]])?;
    /// assert!(data.labels_in_gzip().expect("it has labels") < 100);
    /// # Ok::<(), monolayer::Error>(())
    /// ```
    pub fn labels_in_gzip(&self) -> Option<usize> {
        let Labels::Classes { label_ids, names } = &self.labels else { return None };
        let name = |t: usize| label_ids[t].map_or(FREE_NAME, |label| names.name(label));
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        let mut text = String::new();
        for range in self.ranges() {
            text.clear();
            range.for_each(|t| _ = writeln!(text, "{}", name(t)));
            text.push('\n');
            encoder.write_all(text.as_bytes()).expect("into memory");
        }
        Some(encoder.finish().expect("into memory").len())
    }
}
