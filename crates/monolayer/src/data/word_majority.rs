//! The baseline that gives each word its most frequent label.

use std::collections::HashMap;

use crate::data::{Dataset, Labels, Tokens};

/// The accuracy on `test` of giving each word the label it has most often in `train`, and words not seen there the commonest
/// label. `None` unless both are words with classes, some of which are not free.
pub fn word_majority(train: &Dataset, test: &Dataset) -> Option<f64> {
    let mut counts: HashMap<(&str, &str), usize> = HashMap::new();
    let mut totals: HashMap<&str, usize> = HashMap::new();
    for (word, label) in pairs(train)? {
        *counts.entry((word, label)).or_default() += 1;
        *totals.entry(label).or_default() += 1;
    }
    // Among equals the name that comes first, so that the answer does not depend on the order of a hash table.
    let commonest = *totals.iter().max_by_key(|&(&label, &count)| (count, std::cmp::Reverse(label)))?.0;
    let mut majority: HashMap<&str, (usize, std::cmp::Reverse<&str>)> = HashMap::new();
    for (&(word, label), &count) in &counts {
        let candidate = (count, std::cmp::Reverse(label));
        majority.entry(word).and_modify(|best| *best = (*best).max(candidate)).or_insert(candidate);
    }
    let guess = |word: &str| majority.get(word).map_or(commonest, |&(_, std::cmp::Reverse(label))| label);
    let right = pairs(test)?.filter(|&(word, label)| guess(word) == label).count();
    Some(right as f64 / pairs(test)?.count() as f64).filter(|share| share.is_finite())
}

/// The words of a dataset with their labels, free ones left out.
fn pairs(data: &Dataset) -> Option<impl Iterator<Item = (&str, &str)>> {
    let (Tokens::Words { word_ids: ids, vocabulary }, Labels::Classes { label_ids: labels, names }) =
        (&data.tokens, &data.labels)
    else {
        return None;
    };
    Some(ids.iter().zip(labels).filter_map(|(&word, &label)| Some((vocabulary.name(word), names.name(label?)))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Format;

    #[test]
    fn unseen_words_get_the_commonest_label() {
        let read = |text: &str| Dataset::read("test", Format::Conll, text.as_bytes()).unwrap();
        let train = read("a X\na Y\na Y\nb X\nc X\n");
        let test = read("a Y\nb X\nnew X\na X\n");
        assert_eq!(word_majority(&train, &test), Some(0.75));
        assert_eq!(word_majority(&train, &read("a\n")), None);
    }
}
