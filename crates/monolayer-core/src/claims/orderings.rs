//! All orderings: where nothing in a model depends on places, what holds of a sequence holds of every order of its tokens.
//!
//! **Rule 9.** Let a model have no positions, and no mask in any layer. A program that runs on another order of a sequence is one
//! that runs on the sequence itself and takes its sums in another order; so a token that every program gives its label has
//! that label in every order.

use std::collections::HashSet;

use crate::model::{Mask, Model};
use crate::read::data::Data;
use crate::rules::judge::Verdict;

/// What is claimed of the orderings: how many sequences they are, in digits, and the shortest and the longest length where they
/// are all sequences of the lengths between.
pub type Claimed<'a> = (Option<&'a str>, Option<&'a [usize]>);

/// What the orderings of a dataset are, in words, where the claim of them is true and the model cannot tell them apart; else the
/// verdict. The labels are judged apart.
pub fn check(model: &Model, data: &Data, (sequences, lengths): Claimed) -> Result<String, (Verdict, String)> {
    let unknown = |why: &str| Err((Verdict::Unknown, why.to_owned()));
    let (count, all) = covered(data);
    let Some(count) = count else {
        let claimed = sequences.is_some() || lengths.is_some();
        let many = "more sequences than can be counted";
        return if claimed { unknown("the orderings are too many to be counted") } else { blind(model, many.into()) };
    };
    let all_of = all.as_ref().map_or(String::new(), |[a, b]| format!(", all of length {a} to {b} over its tokens"));
    let said = format!("{count} sequences{all_of}");
    if sequences.is_some_and(|claimed| claimed != count.to_string()) {
        return Err((Verdict::Wrong, format!("another number is claimed: the orderings of the data are {said}")));
    }
    if lengths.is_some_and(|claimed| all.as_ref().is_none_or(|all| claimed != all)) {
        return Err((Verdict::Wrong, format!("not all sequences of the lengths claimed: the orderings are {said}")));
    }
    blind(model, said)
}

/// Passes on what is said where nothing in a model depends on places.
fn blind(model: &Model, said: String) -> Result<String, (Verdict, String)> {
    let masks = model.layers.iter().filter_map(|layer| layer.attention.as_ref()).map(|attention| &attention.mask);
    match (model.positions.is_some(), masks.into_iter().all(|mask| *mask == Mask::None)) {
        (false, true) => Ok(said),
        (true, _) => Err((Verdict::Unknown, "the model has positions: the order of tokens may matter to it".into())),
        _ => Err((Verdict::Unknown, "a layer has a mask: the order of tokens may matter to it".into())),
    }
}

/// How many different sequences are an ordering of one of the data, and the shortest and the longest length where there are no
/// others of the lengths between over the tokens of the data. Nothing where a number does not fit.
fn covered(data: &Data) -> (Option<u128>, Option<[usize; 2]>) {
    let mut multisets = HashSet::new();
    for range in data.offsets.windows(2) {
        let mut tokens = data.tokens[range[0]..range[1]].to_vec();
        tokens.sort_unstable();
        multisets.insert(tokens);
    }
    let count = multisets.iter().try_fold(0_u128, |sum, tokens| sum.checked_add(orders(tokens)?));
    let lengths = || multisets.iter().map(Vec::len);
    let (shortest, longest) = (lengths().min().unwrap_or(0), lengths().max().unwrap_or(0));
    // The orderings are among these, so that as many are all of them.
    let power = |length: usize| (data.different() as u128).checked_pow(u32::try_from(length).ok()?);
    let all = (shortest..=longest).try_fold(0_u128, |sum, length| sum.checked_add(power(length)?));
    (count, (count.is_some() && count == all).then_some([shortest, longest]))
}

/// The different orders of a sorted list: its multinomial coefficient. The product is one of binomials over i before each division.
fn orders(sorted: &[u32]) -> Option<u128> {
    let (mut count, mut placed) = (1_u128, 0);
    for same in sorted.chunk_by(|a, b| a == b) {
        for i in 1..=same.len() as u128 {
            placed += 1;
            count = count.checked_mul(placed)? / i;
        }
    }
    Some(count)
}
