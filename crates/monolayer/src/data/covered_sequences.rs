//! How many sequences a dataset covers with every order of its tokens.

use std::collections::HashSet;

use super::Dataset;

/// The sequences that are a sequence of a dataset or an ordering of one.
///
/// ```
/// use monolayer::Dataset;
/// use monolayer::data::CoveredSequences;
///
/// let data = Dataset::open("task:histogram:alphabet=4,length=1..12,order=sorted")?;
/// assert_eq!(CoveredSequences::of(&data), CoveredSequences { sequences: Some(22_369_620), all_lengths: Some((1, 12)) });
/// # Ok::<(), monolayer::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoveredSequences {
    /// How many different ones there are; none where they are more than 2^128.
    pub sequences: Option<u128>,
    /// The shortest and the longest length, if these are all sequences of the lengths between them over the data's tokens.
    pub all_lengths: Option<(usize, usize)>,
}

impl CoveredSequences {
    /// Those of a dataset. Sequences that differ in the order of their tokens only count once.
    pub fn of(data: &Dataset) -> Self {
        let ids = data.token_ids();
        let multiset = |range: std::ops::Range<usize>| {
            let mut tokens = ids[range].to_vec();
            tokens.sort_unstable();
            tokens
        };
        let multisets: HashSet<Vec<u32>> = data.ranges().map(multiset).collect();
        let sequences = multisets.iter().try_fold(0_u128, |sum, tokens| sum.checked_add(orderings(tokens)?));
        let shortest = data.ranges().map(|range| range.len()).min().unwrap_or(0);
        let longest = data.longest();
        let tokens = ids.iter().copied().collect::<HashSet<u32>>().len() as u128;
        // Nothing else has these lengths and tokens, so that as many as there are is all of them.
        let mut all = (shortest..=longest).map(|length| tokens.checked_pow(u32::try_from(length).ok()?));
        let all = all.try_fold(0_u128, |sum, power| sum.checked_add(power?));
        Self { sequences, all_lengths: (sequences.is_some() && all == sequences).then_some((shortest, longest)) }
    }
}

/// How many orders a sorted list has that look different: a multinomial coefficient.
fn orderings(sorted: &[u32]) -> Option<u128> {
    let (mut count, mut placed) = (1_u128, 0);
    for same in sorted.chunk_by(|a, b| a == b) {
        for i in 1..=same.len() as u128 {
            placed += 1;
            // The places for i equal tokens among so many: whole after each step.
            count = count.checked_mul(placed)? / i;
        }
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covered(sequences: &[&[&str]]) -> CoveredSequences {
        let labels: Vec<Vec<&str>> = sequences.iter().map(|s| vec!["X"; s.len()]).collect();
        let sequences: Vec<Vec<&str>> = sequences.iter().map(|s| s.to_vec()).collect();
        CoveredSequences::of(&Dataset::from_sequences(&sequences, &labels).unwrap())
    }

    #[test]
    fn orderings_are_counted_once() {
        assert_eq!(covered(&[&["a", "b"], &["b", "a"]]), CoveredSequences { sequences: Some(2), all_lengths: None });
        let all = [&["a", "a"][..], &["a", "b"], &["b", "b"]];
        assert_eq!(covered(&all), CoveredSequences { sequences: Some(4), all_lengths: Some((2, 2)) });
        assert_eq!(covered(&[&["a", "b", "c", "a"]]).sequences, Some(12));
        assert_eq!(covered(&[&["a"], &["a", "a", "a"]]).all_lengths, None);
    }

    #[test]
    fn too_many_are_not_counted() {
        let names: Vec<String> = (0..40).map(|i| format!("w{i}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(covered(&[&names]), CoveredSequences { sequences: None, all_lengths: None });
        assert_eq!(covered(&[&names[..20]]).sequences, Some((1..=20).product()));
    }

    #[test]
    fn sorted_sequences_cover_all() {
        for (alphabet, lengths, shortest, longest) in [(1, "1..4", 1, 4), (3, "2..5", 2, 5), (5, "4", 4, 4)] {
            let all = Dataset::open(format!("task:parity:alphabet={alphabet},length={lengths}")).unwrap();
            let sorted =
                Dataset::open(format!("task:parity:alphabet={alphabet},length={lengths},order=sorted")).unwrap();
            let expected =
                CoveredSequences { sequences: Some(all.sequences() as u128), all_lengths: Some((shortest, longest)) };
            assert_eq!((CoveredSequences::of(&all), CoveredSequences::of(&sorted)), (expected, expected));
        }
    }
}
