//! From enclosures to decisions: does the wanted label win, whatever the order of summation?

use crate::dot::Care;
use crate::feed_forward::Output;
use crate::forward::Network;
use crate::interval::Interval;
use crate::model::Head;
use crate::rounding::{two_sum_error, up};

/// What is wanted of a token.
#[derive(Debug, Clone, PartialEq)]
pub enum Wanted<'a> {
    /// The label of this index is the arg max; a name that the model does not know can never be.
    Label(Option<usize>),
    /// The output is within the tolerance of this vector, in every coordinate.
    Near(&'a [f64], f64),
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// It certainly holds; the smallest margin over its error bound.
    Right(f64),
    /// It certainly fails.
    Wrong(Failure),
    /// The enclosures cannot tell: the margin, its error bound.
    Open(f64, f64),
}

/// A certain failure.
#[derive(Debug, Clone, PartialEq)]
pub enum Failure {
    /// Another label scores higher: that label, its score, the wanted label's score (if it has one), and the error bound.
    Label {
        /// The index of a label that beats the wanted one.
        winner: usize,
        /// Its score.
        score: f64,
        /// The wanted label's score.
        wanted: Option<f64>,
        /// How much their difference may be off.
        error: f64,
    },
    /// A coordinate is too far from where it should be.
    Far {
        /// The coordinate.
        coordinate: usize,
        /// The output there.
        output: f64,
        /// What was wanted.
        wanted: f64,
        /// How much the output may be off.
        error: f64,
    },
}

/// Decides one token; in the careful pass, margins of less than `comfortable` error bounds are looked at more closely.
pub fn decide(
    network: &Network,
    head: Option<&Head>,
    output: &Output,
    wanted: &Wanted,
    care: Care,
    comfortable: f64,
) -> Decision {
    match (wanted, head) {
        (Wanted::Label(wanted), Some(head)) => labels(network, head, output, *wanted, (care, comfortable)),
        (Wanted::Near(target, tolerance), _) => near(network, output, target, *tolerance, care),
        (Wanted::Label(_), None) => Decision::Open(f64::NAN, f64::INFINITY),
    }
}

fn labels(
    network: &Network,
    head: &Head,
    output: &Output,
    wanted: Option<usize>,
    (care, comfortable): (Care, f64),
) -> Decision {
    let d = output.mid.len();
    let rough = network.rough_scores(output);
    let Some(wanted) = wanted else {
        let winner = (0..rough.len()).max_by(|&a, &b| rough[a].0.total_cmp(&rough[b].0).then(b.cmp(&a))).unwrap_or(0);
        return Decision::Wrong(Failure::Label { winner, score: rough[winner].0, wanted: None, error: 0.0 });
    };
    let own = network.score(output, wanted, care);
    let mut ratio = f64::INFINITY;
    let mut open: Option<(f64, f64)> = None;
    for other in (0..rough.len()).filter(|&l| l != wanted) {
        let rough_ratio = (rough[wanted].0 - rough[other].0) / up(rough[wanted].1 + rough[other].1);
        // Bounds from norms will do where the margin is comfortable.
        if rough_ratio > comfortable {
            ratio = ratio.min(rough_ratio);
            continue;
        }
        let row = |l: usize| &head.weight[l * d..(l + 1) * d];
        let difference: Vec<f64> = row(wanted).iter().zip(row(other)).map(|(a, b)| a - b).collect();
        let found = network.score(output, other, care);
        let margin = own.mid - found.mid;
        let rounds = up(own.round + found.round);
        let enough = margin.abs() / comfortable - rounds;
        let error = up(rounds + network.functional(output, &difference, care, enough));
        match compare(margin, error, wanted < other) {
            Some(true) => ratio = ratio.min(margin / error),
            Some(false) => {
                let (score, wanted) = (found.mid, Some(own.mid));
                return Decision::Wrong(Failure::Label { winner: other, score, wanted, error });
            }
            None => {
                if open.is_none_or(|(m, e)| margin / error < m / e) {
                    open = Some((margin, error));
                }
            }
        }
    }
    open.map_or(Decision::Right(ratio), |(margin, error)| Decision::Open(margin, error))
}

/// Whether a margin that may be off by `error` is certainly won or certainly lost; `tie_wins` where equal scores go to it.
fn compare(margin: f64, error: f64, tie_wins: bool) -> Option<bool> {
    if error == 0.0 {
        return if margin == 0.0 { Some(tie_wins) } else { margin.partial_cmp(&0.0).map(std::cmp::Ordering::is_gt) };
    }
    if margin > error {
        Some(true)
    } else if margin < -error {
        Some(false)
    } else {
        None
    }
}

fn near(network: &Network, output: &Output, target: &[f64], tolerance: f64, care: Care) -> Decision {
    let mut unit = vec![0.0; target.len()];
    let (mut ratio, mut open) = (f64::INFINITY, None);
    for (coordinate, (&found, &wanted)) in output.mid.iter().zip(target).enumerate() {
        unit[coordinate] = 1.0;
        let error = network.functional(output, &unit, care, 0.0);
        unit[coordinate] = 0.0;
        let distance = (found - wanted).abs();
        let error = up(error + two_sum_error(found, -wanted));
        let margin = tolerance - distance;
        // The margin is rounded once, which moves it by less than one part in 10^12.
        if margin * (1.0 - 1e-12) > error || (error == 0.0 && margin >= 0.0) {
            ratio = ratio.min(margin / error);
        } else if -margin * (1.0 - 1e-12) > error {
            return Decision::Wrong(Failure::Far { coordinate, output: found, wanted, error });
        } else {
            open = Some((margin, error));
        }
    }
    open.map_or(Decision::Right(ratio), |(margin, error)| Decision::Open(margin, error))
}

/// Decides one token from intervals that contain its output in real arithmetic, where they are narrow enough.
pub fn decide_output(head: Option<&Head>, output: &[Interval], wanted: &Wanted) -> Option<Decision> {
    match (wanted, head) {
        (Wanted::Near(target, tolerance), _) => near_output(output, target, *tolerance),
        (Wanted::Label(Some(wanted)), Some(head)) => label_of_output(head, output, *wanted),
        _ => None,
    }
}

fn near_output(output: &[Interval], target: &[f64], tolerance: f64) -> Option<Decision> {
    let (mut ratio, mut open) = (f64::INFINITY, false);
    for (coordinate, (found, &wanted)) in output.iter().zip(target).enumerate() {
        let difference = *found - Interval::point(wanted);
        let error = difference.width() / 2.0;
        if difference.mignitude() > tolerance {
            return Some(Decision::Wrong(Failure::Far { coordinate, output: found.middle(), wanted, error }));
        }
        // Written so that a bound that is not a number leaves the token open.
        open |= difference.magnitude().partial_cmp(&tolerance).is_none_or(std::cmp::Ordering::is_gt);
        ratio = ratio.min((tolerance - difference.middle().abs()) / error);
    }
    if open { None } else { Some(Decision::Right(ratio.max(1.0))) }
}

fn label_of_output(head: &Head, output: &[Interval], wanted: usize) -> Option<Decision> {
    let d = output.len();
    let row = |label: usize| &head.weight[label * d..(label + 1) * d];
    let score = |label: usize| {
        let terms = row(label).iter().zip(output).map(|(w, x)| w * x.middle());
        head.bias[label] + terms.sum::<f64>()
    };
    let exactly = |a: f64, b: f64| Interval::point(a) - Interval::point(b);
    let (mut ratio, mut open) = (f64::INFINITY, false);
    for other in (0..head.labels.len()).filter(|&label| label != wanted) {
        let weights = row(wanted).iter().zip(row(other)).map(|(a, b)| exactly(*a, *b));
        let bias = exactly(head.bias[wanted], head.bias[other]);
        let margin = weights.zip(output).fold(bias, |sum, (w, x)| sum + w * *x);
        let error = margin.width() / 2.0;
        if margin.hi < 0.0 {
            let (score, wanted) = (score(other), Some(score(wanted)));
            return Some(Decision::Wrong(Failure::Label { winner: other, score, wanted, error }));
        }
        open |= margin.lo.partial_cmp(&0.0).is_none_or(std::cmp::Ordering::is_le);
        ratio = ratio.min(margin.middle() / error);
    }
    if open { None } else { Some(Decision::Right(ratio.max(1.0))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_decide_what_they_can() {
        let output = [Interval::new(0.5, 0.75), Interval::point(0.25)];
        let near = |target: [f64; 2], tolerance| decide_output(None, &output, &Wanted::Near(&target, tolerance));
        assert_eq!(near([0.625, 0.25], 0.25), Some(Decision::Right(2.0)));
        assert_eq!(near([0.625, 0.25], 0.1), None);
        assert!(matches!(near([0.625, 0.5], 0.2), Some(Decision::Wrong(Failure::Far { coordinate: 1, .. }))));
        let labels = ["X", "Y", "Z"].map(str::to_owned).to_vec();
        let head = Head { labels, weight: vec![1.0, 0.0, 0.0, 1.0, 0.0, 2.0], bias: vec![0.0, 0.0, 0.0] };
        let label = |wanted| decide_output(Some(&head), &output, &Wanted::Label(Some(wanted)));
        // X may tie with Z.
        assert_eq!((label(0), label(2)), (None, None));
        assert!(matches!(label(1), Some(Decision::Wrong(Failure::Label { winner: 0, .. }))));
        assert_eq!(decide_output(Some(&head), &[Interval::WHOLE; 2], &Wanted::Label(Some(0))), None);
    }
}
