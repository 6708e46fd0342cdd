//! Two models at one word and place, along the id: where a label can change, and into which.

use super::along::{Along, Effect, Ids};
use super::lines::BEND;
use crate::memorize::gated::Unit;

/// A word at a place in a model, and in the model with more units.
pub struct Comparison<'a> {
    pub old: &'a Along<'a>,
    pub new: &'a Along<'a>,
    /// The units that only the new model has.
    pub added: Vec<&'a Unit>,
    /// Inside of windows, intervals are not cut to pieces shorter than this; outside, not shorter than the second.
    pub resolution: (f64, f64),
}

/// What can happen to the label of an id of an interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transition {
    /// Nothing.
    None,
    /// One of these changes, each from a label to another, or none.
    Some(Vec<(usize, usize)>),
    /// This change, certainly.
    Certain((usize, usize)),
    /// Anything.
    Any,
}

/// An interval of ids where labels can change.
#[derive(Debug, Clone, PartialEq)]
pub struct Stretch {
    pub ids: Ids,
    /// From a label to another; none where it may be any.
    pub change: Option<(usize, usize)>,
}

/// More changes than this on one interval are called any.
const MOST_CHANGES: usize = 16;
/// More pieces than this are not cut any further.
const MOST_PIECES: usize = 1000;

impl Comparison<'_> {
    /// What can happen to the label of an id of an interval.
    ///
    /// Where a label x wins in the old model and y in the new one, y was not above x and is now. That needs a new unit that fires
    /// and lifts y or takes from x: sums in floats are monotone in each of their terms, whatever their order, and a unit that does
    /// not fire adds 0. The scores that no such unit touches are the same numbers in both models.
    pub fn at(&self, ids: Ids) -> Transition {
        let of = |unit: &Unit| self.added.iter().any(|added| std::ptr::eq(*added, unit));
        let effects = self.new.effects(ids, of);
        if effects.iter().all(|effect| *effect == Effect::default()) {
            return Transition::None;
        }
        // A label that changes is touched before or after.
        let touched = || (0..effects.len()).filter(|&l| effects[l] != Effect::default());
        let stored = self.old.stored_sums(ids);
        if !self.old.may_win(&stored, touched()) && !self.new.may_win(&stored, touched()) {
            return Transition::None;
        }
        let (old, new) = (self.old.rivals(&stored), self.new.rivals(&stored));
        let mut found = Vec::new();
        for &x in &old.all {
            for &y in new.all.iter().filter(|&&y| y != x && (effects[y].rises || effects[x].falls)) {
                found.push((x, y));
                if found.len() > MOST_CHANGES {
                    return Transition::Any;
                }
            }
        }
        match (&found[..], old.certain(), new.certain()) {
            ([], ..) => Transition::None,
            (_, Some(x), Some(y)) => Transition::Certain((x, y)),
            _ => Transition::Some(found),
        }
    }

    /// The pieces of a range where labels can change. Inside of `windows`, each with its label, changes into that label are
    /// named; all others may be any. None where these are wider than a limit together: what changes far more than was asked for is
    /// no edit.
    pub fn pieces(&self, range: Ids, windows: &[(Ids, usize)], limit: f64) -> Option<Vec<Stretch>> {
        let mut cuts: Vec<f64> = vec![range.0, range.1];
        for (at, off) in self.new.bends() {
            cuts.extend([at - BEND * off, at + BEND * off]);
        }
        cuts.extend(windows.iter().flat_map(|&((low, high), _)| [low, high]));
        cuts.retain(|&cut| range.0 <= cut && cut <= range.1);
        cuts.sort_by(f64::total_cmp);
        cuts.dedup();
        let mut pieces: Vec<Stretch> = Vec::new();
        let mut unnamed = 0.0;
        for pair in cuts.windows(2) {
            let first = pieces.len();
            self.search((pair[0], pair[1]), windows, &mut pieces);
            let widths = pieces[first..].iter().filter(|p| p.change.is_none()).map(|p| p.ids.1 - p.ids.0);
            unnamed += widths.sum::<f64>();
            if unnamed > limit {
                return None;
            }
        }
        Some(merged(pieces))
    }

    fn search(&self, ids: Ids, windows: &[(Ids, usize)], pieces: &mut Vec<Stretch>) {
        let mut stack = vec![ids];
        while let Some(ids) = stack.pop() {
            let transition = self.at(ids);
            if transition == Transition::None {
                continue;
            }
            let middle = 0.5 * ids.0 + 0.5 * ids.1;
            let inside = |&&((low, high), _): &&(Ids, usize)| low <= ids.0 && ids.1 <= high;
            let least =
                if windows.iter().any(|window| inside(&window)) { self.resolution.0 } else { self.resolution.1 };
            let short = ids.1 - ids.0 <= least || !(ids.0 < middle && middle < ids.1);
            let certain = matches!(transition, Transition::Certain(_));
            if !short && !certain && pieces.len() < MOST_PIECES {
                stack.extend([(middle, ids.1), (ids.0, middle)]);
                continue;
            }
            let wanted: Vec<usize> = windows.iter().filter(inside).map(|window| window.1).collect();
            match transition {
                Transition::Certain(change) if wanted.contains(&change.1) => {
                    pieces.push(Stretch { ids, change: Some(change) });
                }
                Transition::Some(list) if list.iter().all(|(_, to)| wanted.contains(to)) => {
                    pieces.extend(list.into_iter().map(|change| Stretch { ids, change: Some(change) }));
                }
                _ => pieces.push(Stretch { ids, change: None }),
            }
        }
    }
}

/// Pieces of the same kind that touch, as one.
fn merged(mut pieces: Vec<Stretch>) -> Vec<Stretch> {
    pieces.sort_by(|a, b| a.change.cmp(&b.change).then(a.ids.0.total_cmp(&b.ids.0)));
    let mut out: Vec<Stretch> = Vec::new();
    for piece in pieces {
        match out.last_mut() {
            Some(last) if last.change == piece.change && piece.ids.0 <= last.ids.1 => {
                last.ids.1 = last.ids.1.max(piece.ids.1);
            }
            _ => out.push(piece),
        }
    }
    out.sort_by(|a, b| a.ids.0.total_cmp(&b.ids.0).then(a.change.cmp(&b.change)));
    out
}
