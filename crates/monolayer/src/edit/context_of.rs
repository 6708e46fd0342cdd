//! Whether two tokens have the same context: the same word, and the same share of each token that they see (Definition 2).

use crate::context_map::View;

/// What a token sees, each with its share: a list of (word, place) in order, with counts over their greatest common divisor.
/// Places are 0 where there are no positions.
pub type SeenTokens = Vec<((u32, usize), usize)>;

/// What a token of a view sees, itself and a start token included.
pub fn seen_tokens(view: &View, t: usize) -> SeenTokens {
    let (_, start) = view.seen(t);
    let place = |other: usize| if view.vectors.positions.is_some() { other - start } else { 0 };
    let mut all: Vec<(u32, usize)> = view.visible(t).map(|other| (view.token_ids[other], place(other))).collect();
    if view.vectors.start.is_some() {
        // The start token counts once; its place is its own.
        all.push((crate::data::context::START, 0));
    }
    all.sort_unstable();
    let mut seen: SeenTokens = Vec::new();
    for token in all {
        match seen.last_mut() {
            Some((last, count)) if *last == token => *count += 1,
            _ => seen.push((token, 1)),
        }
    }
    let divisor = seen.iter().fold(0, |a, &(_, count)| gcd(a, count));
    seen.iter_mut().for_each(|(_, count)| *count /= divisor.max(1));
    seen
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dataset;
    use crate::data::token_vectors::TokenVectors;
    use crate::{Embedding, Mask, Positions};

    #[test]
    fn as_the_contexts_of_a_dataset() {
        let lines = ["a b a", "b a a", "a b a a b a", "a b", "b", "c a"];
        let tokens: Vec<Vec<&str>> = lines.iter().map(|line| line.split(' ').collect()).collect();
        let data = Dataset::from_sequences(&tokens, &tokens).unwrap();
        for positions in [Positions::None, Positions::Auto] {
            for (mask, start) in [(Mask::None, None), (Mask::Causal, None), (Mask::None, Some("<s>"))] {
                let vectors = TokenVectors::with_start(start, &data, &Embedding::Sign(8), &positions, 1, 0).unwrap();
                let view = View::new(&data, &vectors, mask);
                let key = |t: usize| {
                    let place = if vectors.positions.is_some() { view.place(t).1 } else { 0 };
                    (view.token_ids[t], place, seen_tokens(&view, t))
                };
                for a in 0..data.tokens() {
                    for b in 0..data.tokens() {
                        assert_eq!(view.contexts.of_token[a] == view.contexts.of_token[b], key(a) == key(b));
                    }
                }
            }
        }
    }
}
