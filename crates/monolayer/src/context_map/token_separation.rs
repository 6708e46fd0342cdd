//! Definition 1 for the tokens that occur in a dataset: words, vectors, or words at their places.

use std::collections::{BTreeMap, BTreeSet};

use crate::arithmetic::kernels::Real;
use crate::arithmetic::matrix::Matrix;
use crate::arithmetic::parallel;
use crate::arithmetic::rounding::{add_down, mul_down, mul_up};
use crate::context_map::View;
use crate::data::context::distinct_rows;
use crate::data::separation::{Separation, separation};
use crate::error::{Error, Result};

/// The constants of Definition 1 for the different token vectors of a dataset.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenSeparation {
    /// |V|: how many different token vectors occur.
    pub vocabulary: usize,
    /// The constants, to within a few roundings.
    pub constants: Separation,
    /// A certain lower bound of epsilon; infinite when there is one vector only.
    pub epsilon_below: f64,
    /// A certain upper bound of `r_max`.
    pub r_max_above: f64,
    /// A certain lower bound of `r_min`.
    pub r_min_below: f64,
}

/// The unit roundoff.
const U: f64 = <f64 as Real>::UNIT_ROUNDOFF;

/// The constants of Definition 1 for the tokens of a dataset. Two tokens (different words, or places) with one and the same
/// vector are an error.
pub fn token_separation(view: &View) -> Result<TokenSeparation> {
    let tokens = tokens(view);
    let d = view.vectors.d();
    let norm = |&(id, place): &(u32, usize)| separation(d, &view.vectors.vector(id, place)).r_max;
    let norms: Vec<f64> = tokens.iter().map(norm).collect();
    let r_min = norms.iter().copied().fold(f64::INFINITY, f64::min);
    let r_max = norms.iter().copied().fold(0.0, f64::max);
    // d squares and sums, a root, the rounding of the vectors themselves.
    let relative = (2.0 * d as f64 + 32.0) * U;
    // What the rounding of sums of words and places can change.
    let summed = if view.vectors.positions.is_some() { 4.0 * U * r_max } else { 0.0 };
    let (epsilon, rounded) = match apart(view, &tokens) {
        Some(epsilon) => (epsilon, 0.0),
        None => (all_pairs(view, &tokens)?, summed),
    };
    let epsilon_below =
        if epsilon.is_finite() { add_down(mul_down(epsilon, 1.0 - relative), -rounded).max(0.0) } else { epsilon };
    Ok(TokenSeparation {
        vocabulary: tokens.len(),
        constants: Separation { r_min, r_max, epsilon },
        epsilon_below,
        r_max_above: mul_up(r_max, 1.0 + relative),
        r_min_below: add_down(mul_down(r_min, 1.0 - relative), -summed).max(0.0),
    })
}

/// The different tokens that occur: (id, place), places 0 where they do not count.
pub fn tokens(view: &View) -> Vec<(u32, usize)> {
    let places = view.vectors.positions.is_some();
    let mut seen = BTreeSet::new();
    for window in view.offsets.windows(2) {
        for (place, &id) in view.token_ids[window[0]..window[1]].iter().enumerate() {
            seen.insert((id, if places { place } else { 0 }));
        }
    }
    seen.into_iter().collect()
}

/// Epsilon where words and places use different coordinates, so that the squares of their distances add: the closest tokens
/// then share the word or the place, unless both the closest words and the closest places are very close. `None` where that
/// structure is missing or does not settle it.
fn apart(view: &View, tokens: &[(u32, usize)]) -> Option<f64> {
    let (words, places) = (&view.vectors.words, view.vectors.positions.as_ref()?);
    let (word_columns, place_columns) = (used_columns(words), used_columns(places));
    let disjoint = !word_columns.iter().any(|c| place_columns.contains(c));
    if !disjoint || word_columns.is_empty() || place_columns.is_empty() {
        return None;
    }
    let (mut by_word, mut by_place) = (BTreeMap::<u32, Vec<usize>>::new(), BTreeMap::<usize, Vec<usize>>::new());
    for &(id, place) in tokens {
        by_word.entry(id).or_default().push(place);
        by_place.entry(place).or_default().push(id as usize);
    }
    let closest = |rows: &[usize], of: &Matrix<f64>, columns: &[usize]| {
        let data: Vec<f64> = rows.iter().flat_map(|&i| columns.iter().map(move |&c| of.row(i)[c])).collect();
        separation(columns.len(), &data).epsilon
    };
    let smallest = |list: Vec<f64>| list.into_iter().fold(f64::INFINITY, f64::min);
    let (by_word, by_place): (Vec<_>, Vec<_>) = (by_word.into_values().collect(), by_place.into_values().collect());
    let same_word = parallel::map_slice(&by_word, |rows| closest(rows, places, &place_columns));
    let same_place = parallel::map_slice(&by_place, |rows| closest(rows, words, &word_columns));
    let epsilon = smallest(same_word).min(smallest(same_place));
    // Tokens that share neither are at least as far apart as any two places, and as any two words.
    let all = |of: &Matrix<f64>, columns: &[usize]| closest(&(0..of.rows).collect::<Vec<_>>(), of, columns);
    let closest_places = all(places, &place_columns);
    let settled = epsilon <= closest_places || epsilon <= closest_places.hypot(all(words, &word_columns));
    (settled && epsilon > 0.0).then_some(epsilon)
}

/// The columns that are not all 0.
fn used_columns(of: &Matrix<f64>) -> Vec<usize> {
    (0..of.cols).filter(|&c| of.iter_rows().any(|row| row[c] != 0.0)).collect()
}

/// Epsilon from all pairs of token vectors.
fn all_pairs(view: &View, tokens: &[(u32, usize)]) -> Result<f64> {
    let d = view.vectors.d();
    let rows: Vec<f64> = tokens.iter().flat_map(|&(id, place)| view.vectors.vector(id, place)).collect();
    let (of_row, first) = distinct_rows(d, &rows);
    if first.len() < tokens.len() {
        let later = (0..tokens.len()).find(|&i| first[of_row[i] as usize] != i).expect("a row that is not new");
        let place = |i: usize| {
            let (id, place) = tokens[i];
            let same =
                |t: usize| view.token_ids[t] == id && (view.vectors.positions.is_none() || view.place(t).1 == place);
            let (sequence, place) =
                view.place((0..view.token_ids.len()).find(|&t| same(t)).expect("a token that occurs"));
            format!("token {} of sequence {}", place + 1, sequence + 1)
        };
        return Err(Error::too_close(
            format!("{} and {} get the same vector", place(first[of_row[later] as usize]), place(later)),
            "choose other `positions` (auto keeps different tokens apart), or none",
        ));
    }
    Ok(separation(d, &rows).epsilon)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::embedding::Embedding;
    use crate::data::positions::Positions;
    use crate::data::token_vectors::TokenVectors;
    use crate::data::{Dataset, Format};
    use crate::paper::attention::Mask;

    fn measured(text: &str, embedding: &str, positions: &str) -> Result<TokenSeparation> {
        let format = if text.starts_with('{') { Format::JsonLines } else { Format::Conll };
        let data = Dataset::read("test", format, text.as_bytes()).unwrap();
        let positions: Positions = positions.parse().unwrap();
        let embedding: Embedding = embedding.parse().unwrap();
        let vectors = TokenVectors::new(&data, &embedding, &positions, 1, 7).unwrap();
        let view = View::new(&data, &vectors, Mask::None);
        let found = token_separation(&view)?;
        // Word for word: all vectors, all pairs.
        let rows: Vec<f64> = tokens(&view).iter().flat_map(|&(id, k)| vectors.vector(id, k)).collect();
        let plain = separation(vectors.d(), &rows);
        let close = |a: f64, b: f64| a == b || (a - b).abs() <= 1e-14 * b;
        assert!(close(found.constants.epsilon, plain.epsilon) && close(found.constants.r_max, plain.r_max));
        assert!(close(found.constants.r_min, plain.r_min));
        assert!(found.epsilon_below <= plain.epsilon && found.r_max_above >= plain.r_max);
        assert!(found.r_min_below <= plain.r_min && found.r_min_below >= plain.r_min * (1.0 - 1e-12));
        Ok(found)
    }

    #[test]
    fn agrees_with_all_pairs() {
        let text = "a\nb\nc\na\n\nb\na\n\nd\ne\nf\ng\nh\na\nb\n";
        for embedding in ["sign:3", "sign:9", "random:2", "random:5"] {
            for positions in ["none", "sign:4", "sign:32", "random:1", "random:3"] {
                measured(text, embedding, positions).unwrap();
            }
        }
        assert_eq!(measured(text, "sign:9", "none").unwrap().vocabulary, 8);
        assert_eq!(measured(text, "sign:9", "sign:4").unwrap().vocabulary, 13);
    }

    #[test]
    fn vectors_with_places() {
        let text = "{\"tokens\": [[1, 0], [0, 1], [1, 0]]}\n{\"tokens\": [[0, 1]]}\n";
        assert_eq!(measured(text, "sign:1", "none").unwrap().vocabulary, 2);
        let steps = measured(text, "sign:1", "auto").unwrap();
        assert_eq!(steps.vocabulary, 4);
        assert!(steps.epsilon_below > 0.0);
    }

    #[test]
    fn one_vector_for_two_tokens_is_an_error() {
        let data = Dataset::read("test", Format::JsonLines, &b"{\"tokens\": [[2], [0]]}\n"[..]).unwrap();
        let mut vectors = TokenVectors::new(&data, &Embedding::Sign(1), &"none".parse().unwrap(), 0, 0).unwrap();
        vectors.positions = Some(Matrix::new(2, 1, vec![-1.0, 1.0]));
        let message = token_separation(&View::new(&data, &vectors, Mask::None)).unwrap_err().to_string();
        assert!(message.contains("token 1 of sequence 1 and token 2 of sequence 1 get the same vector"), "{message}");
    }
}
