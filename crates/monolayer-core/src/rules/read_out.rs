//! What a head can read, over all sequences: bounds of an average without its weights.

use super::attention::{rounded_average, sums_fit};
use super::ball::Ball;
use super::matrix::Matrix;
use super::network::Network;
use super::off_units::{Largest, inputs_within};
use super::sum::{Arithmetic, Term, real_sum, sum};
use crate::number::Dyadic;

/// Every number that the one value of the one head of a first layer can be, in a sequence of any of these words in which at most n tokens
/// are seen, each at any of these places. Nothing where a program may overflow on the way.
///
/// A value is a linear function of word and place, but for rounding, so it is between the sums of their least and greatest parts. An average
/// is between the least and the greatest value, but for Rule 4's bound. A computed weight may be negative, by no more than the smallest
/// normal number nu; since the weights' sum is at least 1/2, that takes the average from the middle by 1 + 4 n nu times the radius at most.
pub fn read_out(network: &Network, words: &[Vec<Dyadic>], places: &[Vec<Dyadic>], n: usize) -> Option<Ball> {
    let arithmetic = network.arithmetic;
    let layer = network.blocks.first()?.attention.as_ref().filter(|layer| layer.heads * layer.size == 1)?;
    let Arithmetic::Float { format, .. } = arithmetic else { return None };
    let inputs = inputs_within(arithmetic, &Largest::of(words)?, &Largest::of(places)?);
    if inputs.iter().any(|(x, _)| x.top() >= format.top() - 1) {
        return None;
    }
    let project = |matrix: &Matrix| {
        let part = |x: &Vec<Dyadic>| real_sum(matrix.weights(0).map(|(c, w)| Term::weighted(w, Ball::exact(x[c]))));
        let hull = |rows: &[Vec<Dyadic>]| rows.iter().map(part).reduce(Ball::span);
        let off = real_sum(matrix.weights(0).map(|(c, w)| Term::weighted(w, inputs[c].1)));
        let rounding = sum(arithmetic, matrix.weights(0).map(|(c, w)| Term::weighted(w, inputs[c].0)))?.rounding;
        Some(hull(words)?.plus(hull(places)?).plus(off).plus(rounding))
    };
    let (keys, queries, values) = (project(&layer.w_k)?, project(&layer.w_q)?, project(&layer.w_v)?);
    sum(arithmetic, [Term::product(keys, queries)].into_iter())?;
    let largest = values.top();
    if !sums_fit(arithmetic, largest, n) {
        return None;
    }
    let normal = values.spread().times(Ball::whole(4 * n)).scaled(format.least() + format.bits() - 1);
    let all = values.size().times(Ball::whole(n)).size();
    rounded_average(format, n, (values.plus(normal.within()), Ball::power(largest)), all)
}
