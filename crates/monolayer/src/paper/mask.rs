//! Masks (132): which tokens a query sees.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};

/// Which tokens a query sees: the zeros of C in eq. 132. Every token sees itself. Places count from 0.
///
/// ```
/// use monolayer::Mask;
///
/// assert!(Mask::None.visible(0, 1) && !Mask::Causal.visible(0, 1) && Mask::Causal.visible(1, 1));
/// assert!(Mask::Prefix(2).visible(0, 1) && !Mask::Prefix(2).visible(0, 2));
/// assert!(Mask::Band(1, 0).visible(3, 2) && !Mask::Band(1, 0).visible(3, 1));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mask {
    /// All of its sequence.
    None,
    /// Itself and those before it.
    Causal,
    /// The first k of its sequence, itself and those before it.
    Prefix(usize),
    /// So many tokens before it, so many after it, and itself.
    Band(usize, usize),
    /// Those with a 1 in its row of a matrix. No sequence may be longer than the matrix is wide.
    Matrix(Arc<MaskMatrix>),
}

/// A square matrix of zeros and ones, with ones on its diagonal: 1 where the token of the row sees that of the column.
///
/// ```
/// use monolayer::paper::mask::MaskMatrix;
///
/// let matrix = MaskMatrix::new(2, vec![1, 0, 1, 1])?;
/// assert_eq!(matrix.row(0), [1, 0]);
/// assert!(MaskMatrix::new(2, vec![1, 0, 0, 0]).is_err());
/// # Ok::<(), monolayer::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaskMatrix {
    size: usize,
    entries: Vec<u8>,
}

impl MaskMatrix {
    /// The matrix with these entries, row-major. Each must be 0 or 1, and 1 on the diagonal.
    pub fn new(size: usize, entries: Vec<u8>) -> Result<Self> {
        if size == 0 || size.checked_mul(size) != Some(entries.len()) {
            return Err(Error::setting(
                format!("a mask of {} entries for {size} tokens", entries.len()),
                "give a square matrix of at least one row",
            ));
        }
        if let Some(at) = entries.iter().position(|&entry| entry > 1) {
            return Err(Error::setting(
                format!("a mask with neither 0 nor 1 in row {}, column {}", at / size + 1, at % size + 1),
                "write 1 where the token of the row sees that of the column, else 0",
            ));
        }
        let matrix = Self { size, entries };
        match (0..size).find(|&token| matrix.row(token)[token] == 0) {
            None => Ok(matrix),
            Some(token) => {
                let blind = matrix.row(token).iter().all(|&entry| entry == 0);
                let number = token + 1;
                let what = if blind {
                    format!("the mask hides every token from token {number}")
                } else {
                    format!("the mask hides token {number} from itself")
                };
                Err(Error::setting(what, "let each token see itself: write 1 on the diagonal"))
            }
        }
    }

    /// How many tokens it is for.
    pub fn size(&self) -> usize {
        self.size
    }

    /// All entries, row-major.
    pub fn entries(&self) -> &[u8] {
        &self.entries
    }

    /// What the token at a place sees.
    pub fn row(&self, place: usize) -> &[u8] {
        &self.entries[place * self.size..(place + 1) * self.size]
    }
}

impl Mask {
    /// A mask of a matrix, row-major, as [`MaskMatrix::new`] asks for it.
    pub fn matrix(size: usize, entries: Vec<u8>) -> Result<Self> {
        Ok(Self::Matrix(Arc::new(MaskMatrix::new(size, entries)?)))
    }

    /// Whether the token at place `query` sees the one at place `key`. Nothing is visible beyond a matrix.
    pub fn visible(&self, query: usize, key: usize) -> bool {
        match self {
            Self::None => true,
            Self::Causal => key <= query,
            Self::Prefix(k) => key < *k || key <= query,
            Self::Band(before, after) => query <= key.saturating_add(*before) && key <= query.saturating_add(*after),
            Self::Matrix(matrix) => query.max(key) < matrix.size && matrix.row(query)[key] == 1,
        }
    }

    /// What the token at place `query` of a sequence of `length` tokens sees. The mask must have room for the sequence:
    /// see [`Self::check`].
    pub fn seen(&self, query: usize, length: usize) -> Seen<'_> {
        Seen::Range(match self {
            Self::None => 0..length,
            Self::Causal => 0..query + 1,
            Self::Prefix(k) => 0..length.min((*k).max(query + 1)),
            Self::Band(before, after) => {
                query.saturating_sub(*before)..length.min(query.saturating_add(*after).saturating_add(1))
            }
            Self::Matrix(matrix) => return Seen::Row(&matrix.row(query)[..length]),
        })
    }

    /// Whether the token at place `query` sees the one at place `key` where the start token is at place 0 and the sequence's
    /// own tokens follow. Every token sees the start token, which sees what a token before the first would see.
    pub fn visible_from_start(&self, query: usize, key: usize) -> bool {
        match (query.checked_sub(1), key.checked_sub(1)) {
            (_, None) => true,
            (Some(query), Some(key)) => self.visible(query, key),
            (None, Some(key)) => match self {
                Self::None => true,
                Self::Causal | Self::Matrix(_) => false,
                Self::Prefix(k) => key < *k,
                Self::Band(_, after) => key < *after,
            },
        }
    }

    /// [`Self::seen`] where place 0 is the start token's, which counts in `length`.
    pub fn seen_from_start(&self, query: usize, length: usize) -> Seen<'_> {
        let own = length - 1;
        let range = match (query.checked_sub(1), self) {
            (Some(place), _) => match self.seen(place, own) {
                Seen::Row(row) => return Seen::StartAndRow(row),
                Seen::Range(range) => range,
                with_start => return with_start,
            },
            (None, Self::None) => 0..own,
            (None, Self::Causal | Self::Matrix(_)) => 0..0,
            (None, Self::Prefix(k)) => 0..own.min(*k),
            (None, Self::Band(_, after)) => 0..own.min(*after),
        };
        if range.start == 0 { Seen::Range(0..range.end + 1) } else { Seen::StartAnd(range.start + 1..range.end + 1) }
    }

    /// How long a sequence may be; `None` where any length will do.
    pub fn longest(&self) -> Option<usize> {
        if let Self::Matrix(matrix) = self { Some(matrix.size) } else { None }
    }

    /// An error where the mask has no room for a sequence of `length` tokens.
    pub fn check(&self, length: usize) -> Result<()> {
        match self.longest().filter(|&most| most < length) {
            None => Ok(()),
            Some(most) => Err(Error::mismatch(
                format!("a sequence of {length} tokens where the mask is for {most}"),
                "split the sequence, or give a larger mask",
            )),
        }
    }
}

/// The places that one token sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen<'a> {
    /// All of a range.
    Range(Range<usize>),
    /// Those with a 1.
    Row(&'a [u8]),
    /// The start token's, which is 0, and all of a range after it.
    StartAnd(Range<usize>),
    /// The start token's, which is 0, and those after it with a 1.
    StartAndRow(&'a [u8]),
}

impl<'a> Seen<'a> {
    /// The places, in order.
    pub fn places(&self) -> impl Iterator<Item = usize> + Clone + use<'a> {
        let (start, range, row) = match self {
            Self::Range(range) => (0, range.clone(), None),
            Self::Row(row) => (0, 0..row.len(), Some(*row)),
            Self::StartAnd(range) => (1, range.clone(), None),
            Self::StartAndRow(row) => (1, 1..row.len() + 1, Some(*row)),
        };
        (0..start).chain(range.filter(move |&place| row.is_none_or(|row| row[place - start] == 1)))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        match self {
            Self::Range(range) => range.len(),
            Self::StartAnd(range) => 1 + range.len(),
            Self::Row(row) => row.iter().map(|&entry| usize::from(entry)).sum(),
            Self::StartAndRow(row) => 1 + Self::Row(row).count(),
        }
    }

    /// What stands at the places: a part of `all` itself, or collected in `room`.
    pub fn pick<'b, T: Clone>(&self, all: &'b [T], room: &'b mut Vec<T>) -> &'b [T] {
        if let Self::Range(range) = self {
            return &all[range.clone()];
        }
        room.clear();
        room.extend(self.places().map(|place| all[place].clone()));
        room
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Masks of all kinds for up to `size` tokens.
    fn masks(size: usize) -> impl Strategy<Value = Mask> {
        let matrix = prop::collection::vec(0_u8..2, size * size).prop_map(move |mut entries| {
            (0..size).for_each(|i| entries[i * size + i] = 1);
            Mask::matrix(size, entries).unwrap()
        });
        let end = prop_oneof![0..size + 2, Just(usize::MAX)];
        prop_oneof![
            Just(Mask::None),
            Just(Mask::Causal),
            end.clone().prop_map(Mask::Prefix),
            (end.clone(), end).prop_map(|(before, after)| Mask::Band(before, after)),
            matrix,
        ]
    }

    proptest! {
        #[test]
        fn what_is_seen_is_what_is_visible(mask in masks(6), length in 1..=6_usize) {
            let numbers: Vec<usize> = (10..10 + length).collect();
            for query in 0..length {
                let seen = mask.seen(query, length);
                let places: Vec<usize> = seen.places().collect();
                let visible: Vec<usize> = (0..length).filter(|&key| mask.visible(query, key)).collect();
                prop_assert_eq!(&places, &visible);
                prop_assert!(places.contains(&query), "{:?} hides token {} from itself", &mask, query);
                prop_assert_eq!(seen.count(), places.len());
                let picked: Vec<usize> = places.iter().map(|place| place + 10).collect();
                let mut room = Vec::new();
                prop_assert_eq!(seen.pick(&numbers, &mut room), &picked[..]);
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_seen_with_a_start_token(mask in masks(6), length in 1..=7_usize) {
            for query in 0..length {
                let seen = mask.seen_from_start(query, length);
                let places: Vec<usize> = seen.places().collect();
                let visible: Vec<usize> = (0..length).filter(|&key| mask.visible_from_start(query, key)).collect();
                prop_assert_eq!(&places, &visible, "{:?} {}", &mask, query);
                prop_assert!(places.contains(&0) && places.contains(&query));
                prop_assert_eq!(seen.count(), places.len());
                let numbers: Vec<usize> = (10..10 + length).collect();
                let picked: Vec<usize> = places.iter().map(|place| place + 10).collect();
                let mut room = Vec::new();
                prop_assert_eq!(seen.pick(&numbers, &mut room), &picked[..]);
                // Own tokens see of each other what they see without a start token.
                let own = query.checked_sub(1).map(|query| mask.seen(query, length - 1).places().map(|p| p + 1).collect());
                prop_assert!(own.is_none_or(|own: Vec<usize>| own == places[1..]));
            }
        }
    }

    #[test]
    fn the_start_token_sees_what_one_before_the_first_would() {
        let seen = |mask: &Mask| mask.seen_from_start(0, 5).places().collect::<Vec<_>>();
        assert_eq!(seen(&Mask::None), [0, 1, 2, 3, 4]);
        assert_eq!(seen(&Mask::Causal), [0]);
        assert_eq!(seen(&Mask::Prefix(2)), [0, 1, 2]);
        assert_eq!(seen(&Mask::Band(7, 3)), [0, 1, 2, 3]);
        assert_eq!(seen(&Mask::matrix(4, vec![1; 16]).unwrap()), [0]);
    }

    #[test]
    fn masks_that_blind_a_token_name_it() {
        let error = |size, entries| MaskMatrix::new(size, entries).unwrap_err().to_string();
        assert!(error(3, vec![1, 1, 1, 0, 0, 0, 1, 1, 1]).contains("hides every token from token 2"));
        assert!(error(3, vec![1, 1, 1, 1, 0, 0, 1, 1, 1]).contains("hides token 2 from itself"));
        assert!(error(2, vec![1, 3, 1, 1]).contains("neither 0 nor 1 in row 1, column 2"));
        assert!(error(2, vec![1, 1, 1]).contains("3 entries for 2 tokens"));
        assert!(error(0, vec![]).contains("0 entries"));
    }

    #[test]
    fn a_matrix_ends_where_it_ends() {
        let mask = Mask::matrix(2, vec![1, 1, 1, 1]).unwrap();
        assert!(mask.check(2).is_ok() && !mask.visible(2, 2) && !mask.visible(0, 2));
        let error = mask.check(3).unwrap_err().to_string();
        assert!(error.contains("3 tokens where the mask is for 2"), "{error}");
        assert!(Mask::Band(0, 0).check(1_000_000).is_ok());
    }
}
