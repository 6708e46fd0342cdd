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
        let multisets = Multisets::of(data.ranges().map(|range| &ids[range]));
        let tokens = ids.iter().copied().collect::<HashSet<u32>>().len();
        let shortest = data.ranges().map(|range| range.len()).min().unwrap_or(0);
        Self::new(&multisets, tokens, (shortest, data.longest()))
    }

    /// From the multisets of all sequences, the number of different tokens, and the shortest and the longest length.
    pub(crate) fn new(multisets: &Multisets, tokens: usize, (shortest, longest): (usize, usize)) -> Self {
        let different = multisets.0.as_ref();
        let sequences =
            different.and_then(|all| all.iter().try_fold(0_u128, |sum, &(_, orders)| sum.checked_add(orders)));
        // Nothing else has these lengths and tokens, so that as many as there are is all of them.
        let mut all = (shortest..=longest).map(|length| (tokens as u128).checked_pow(u32::try_from(length).ok()?));
        let all = all.try_fold(0_u128, |sum, power| sum.checked_add(power?));
        Self { sequences, all_lengths: (sequences.is_some() && all == sequences).then_some((shortest, longest)) }
    }
}

/// The different multisets of tokens of some sequences, by half of their BLAKE3 hashes, in order, and how many orders each has;
/// none where one of them has more than 2^128.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Multisets(pub Option<Vec<(u128, u128)>>);

impl Multisets {
    /// Those of some sequences.
    pub fn of<'a>(sequences: impl Iterator<Item = &'a [u32]>) -> Self {
        let (mut sorted, mut bytes) = (Vec::new(), Vec::new());
        let one = |tokens: &[u32]| {
            sorted.clear();
            sorted.extend_from_slice(tokens);
            sorted.sort_unstable();
            bytes.clear();
            bytes.extend(sorted.iter().flat_map(|token| token.to_le_bytes()));
            let half = blake3::hash(&bytes).as_bytes().first_chunk().map_or(0, |half| u128::from_le_bytes(*half));
            orderings(&sorted).map(|orders| (half, orders))
        };
        Self::different(sequences.map(one).collect())
    }

    /// Those of several lists together.
    pub fn joined(parts: Vec<Self>) -> Self {
        let lists: Option<Vec<Vec<(u128, u128)>>> = parts.into_iter().map(|part| part.0).collect();
        Self::different(lists.map(|lists| lists.concat()))
    }

    fn different(mut list: Option<Vec<(u128, u128)>>) -> Self {
        if let Some(list) = &mut list {
            list.sort_unstable();
            list.dedup();
        }
        Self(list)
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
