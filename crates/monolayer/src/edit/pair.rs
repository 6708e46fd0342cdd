//! All edits of one word at one place: units for each, and the proof of what they change together.

use super::along::{Along, Ids};
use super::bump::{BumpShape, Workshop};
use super::lines::TokenLines;
use super::site::Site;
use super::transitions::{Comparison, Stretch, Transition};
use crate::memorize::gated::Unit;

/// A word at a place: the row of the embedding and, where there are positions, the row of these.
pub type WordPlace = (u32, usize);

/// A context that is to get a label.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WantedLabel {
    /// Its id, nearly.
    pub center: f64,
    /// The ids that programs can compute for it.
    pub ids: Ids,
    /// The label that it is to get.
    pub label: usize,
}

/// A context that must keep its label.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kept {
    /// Its id, nearly.
    pub center: f64,
    /// The ids that programs can compute for it.
    pub ids: Ids,
}

/// What came of an edit.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The context gets its label, by this many new units.
    Made {
        /// How many.
        units: usize,
    },
    /// It had the label before.
    Unchanged,
    /// It was not made.
    Refused {
        /// Why not.
        why: String,
        /// How far away another context is that would change, too.
        found: Option<f64>,
        /// How far away it would have to be.
        needed: Option<f64>,
    },
}

/// What edits do to a word at a place.
pub struct EditedPair {
    /// The word and the place.
    pub pair: WordPlace,
    /// The units to add.
    pub units: Vec<Unit>,
    /// Where labels can change.
    pub pieces: Vec<Stretch>,
    /// What came of each edit.
    pub outcomes: Vec<Outcome>,
}

/// Half the widths of bumps to try, in steps.
const WIDTHS: [f64; 5] = [64.0, 256.0, 1024.0, 4096.0, 24.0];
/// How far a change may reach beyond what was asked for, in steps, and still bear its name.
const WINDOW: f64 = 16.0;

/// The share of all ids where labels may change that were not asked to, at most.
const MOST_SLIVERS: f64 = 0.01;

struct PairWork<'a> {
    site: &'a Site,
    pair: WordPlace,
    token: TokenLines<'a>,
    kept: &'a [Kept],
    made: Vec<Made>,
}

/// An edit that was made.
#[derive(Clone)]
struct Made {
    units: Vec<Unit>,
    wanted: WantedLabel,
    /// Where changes bear its name.
    window: Ids,
    /// Where labels can change from before it to after it.
    pieces: Vec<Stretch>,
}

/// Units that would make an edit, and what they would do.
struct TriedBump {
    made: Made,
    /// The width of the pieces that were not asked for.
    slivers: f64,
}

/// Why units would not do: another context would change, so far away, which would have to be further.
struct TooNear {
    found: f64,
    needed: f64,
}

/// Makes the edits of a word at a place, one after another.
pub fn edit_pair(site: &Site, pair: WordPlace, wanted: &[WantedLabel], kept: &[Kept]) -> EditedPair {
    let token = TokenLines::new(&site.stored, pair, site.range, site.format);
    let mut work = PairWork { site, pair, token, kept, made: Vec::new() };
    let outcomes = wanted.iter().map(|wanted| work.edit(wanted)).collect();
    let pieces = work.pieces();
    let units = work.made.into_iter().flat_map(|made| made.units).collect();
    EditedPair { pair, units, pieces, outcomes }
}

impl PairWork<'_> {
    fn along<'b>(&'b self, made: impl Iterator<Item = &'b Made>) -> Along<'b> {
        Along::new(&self.token, made.flat_map(|made| &made.units))
    }

    /// Where labels can change through all edits that were made.
    fn pieces(&self) -> Vec<Stretch> {
        match &self.made[..] {
            [] => return Vec::new(),
            [only] => return only.pieces.clone(),
            _ => (),
        }
        let (old, new) = (self.along([].iter()), self.along(self.made.iter()));
        let windows: Vec<(Ids, usize)> = self.made.iter().map(|made| (made.window, made.wanted.label)).collect();
        let comparison = self.comparison(&old, &new, &self.made);
        comparison.pieces(self.site.range, &windows, f64::INFINITY).expect("no limit")
    }

    fn comparison<'b>(&self, old: &'b Along<'b>, new: &'b Along<'b>, made: &'b [Made]) -> Comparison<'b> {
        let added = made.iter().flat_map(|made| &made.units).collect();
        let resolution = made.iter().map(|made| (made.window.1 - made.window.0) / (8.0 * WINDOW));
        let least = (self.site.range.1 - self.site.range.0) * 1e-12;
        let resolution = (resolution.fold(f64::INFINITY, f64::min).max(least), 2e7 * least);
        Comparison { old, new, added, resolution }
    }

    fn edit(&mut self, wanted: &WantedLabel) -> Outcome {
        let refused = |why: &str| Outcome::Refused { why: why.to_owned(), found: None, needed: None };
        if !(wanted.ids.0.is_finite() && wanted.ids.1.is_finite()) {
            return refused("rounding may move its context id by any amount");
        }
        let old = self.along(self.made.iter());
        if old.rivals_one_by_one(wanted.ids).certain() == Some(wanted.label) {
            return Outcome::Unchanged;
        }
        let Some(gate) = self.site.gates.gate(self.pair.0, self.pair.1) else {
            return refused("no gate tells its word and place from all others");
        };
        let Some((direction, height)) = self.height(&old, wanted) else {
            return refused("no unit lifts its label above all others");
        };
        let workshop = Workshop {
            gate: &gate,
            range: self.site.range,
            round: self.site.round,
            direction: &direction,
            unit_roundoff: self.site.format.u,
        };
        let small = 1e-3 * (self.site.range.1 - self.site.range.0);
        let (mut best, mut near): (Option<TriedBump>, Option<TooNear>) = (None, None);
        for shape in self.shapes(wanted.label) {
            let mut units = workshop.units(shape, wanted.ids, height);
            // What no id opens adds nothing.
            units.retain(|unit| self.token.line(unit).is_some());
            if !units.iter().all(|unit| gate.shuts(unit, self.site.range)) {
                continue;
            }
            match self.candidate(&workshop, &old, shape, units, wanted) {
                Some(Ok(found)) if best.as_ref().is_none_or(|best| found.slivers < best.slivers) => best = Some(found),
                Some(Err(found)) if near.as_ref().is_none_or(|near| found.needed < near.needed) => near = Some(found),
                _ => (),
            }
            // The two bumps of a width are compared; wider and narrower ones are for where both do not do.
            let enough = if matches!(shape, BumpShape::Bump { leftward: true, .. }) { small } else { 0.0 };
            if best.as_ref().is_some_and(|best| best.slivers <= enough) {
                break;
            }
        }
        match (best, near) {
            (Some(best), _) => {
                let units = best.made.units.len();
                self.made.push(best.made);
                Outcome::Made { units }
            }
            (None, Some(TooNear { found, needed })) => {
                let why = "another context of its word and place is too near".to_owned();
                Outcome::Refused { why, found: Some(found), needed: Some(needed) }
            }
            (None, None) => refused("no units were proved to give it its label, whatever the order of summation"),
        }
    }

    /// Tents where no other label's score is touched, then bumps.
    fn shapes(&self, label: usize) -> Vec<BumpShape> {
        let head = &self.site.stored.head;
        let apart = |l: usize| head.row(l).iter().zip(head.row(label)).all(|(a, b)| *a == 0.0 || *b == 0.0);
        let alone = (0..head.rows).all(|l| l == label || apart(l));
        let bumps =
            WIDTHS.into_iter().flat_map(|steps| [false, true].map(|leftward| BumpShape::Bump { steps, leftward }));
        alone.then_some(BumpShape::Tent).into_iter().chain(bumps).collect()
    }

    /// What to add to the coordinates of labels per unit of score, and how much of it makes a label win for the ids of a context.
    fn height(&self, along: &Along, wanted: &WantedLabel) -> Option<(Vec<f64>, f64)> {
        let head = &self.site.stored.head;
        let own = head.row(wanted.label);
        let square: f64 = own.iter().map(|x| x * x).sum();
        let direction: Vec<f64> = own.iter().map(|x| x / square).collect();
        let most_over = along.most_over(wanted.ids, wanted.label);
        let height = |l: usize| {
            let share: f64 = head.row(l).iter().zip(&direction).map(|(a, b)| a * b).sum();
            let behind = most_over[l].max(0.0);
            (1.25 * behind + 0.5 * square) / (1.0 - share)
        };
        let others = (0..head.rows).filter(|&l| l != wanted.label);
        let heights: Vec<f64> = others.map(height).collect();
        let good = square > 0.0 && direction.iter().all(|x| x.is_finite()) && heights.iter().all(|h| *h > 0.0);
        let highest = heights.into_iter().fold(0.5 * square, f64::max);
        (good && highest.is_finite()).then_some((direction, highest))
    }

    /// Whether units make an edit and nothing else that matters. None where they do not give the label.
    fn candidate(
        &self,
        workshop: &Workshop,
        old: &Along,
        shape: BumpShape,
        units: Vec<Unit>,
        wanted: &WantedLabel,
    ) -> Option<Result<TriedBump, TooNear>> {
        let reach = match shape {
            BumpShape::Tent => WINDOW * workshop.step(),
            BumpShape::Bump { steps, .. } => (steps + WINDOW) * workshop.step() + 2.0 * (wanted.ids.1 - wanted.ids.0),
        };
        let window = (wanted.ids.0 - reach, wanted.ids.1 + reach);
        let mut made = self.made.clone();
        made.push(Made { units, wanted: *wanted, window, pieces: Vec::new() });
        let new = self.along(made.iter());
        if new.rivals_one_by_one(wanted.ids).certain() != Some(wanted.label) {
            return None;
        }
        let comparison = self.comparison(old, &new, std::slice::from_ref(&made[made.len() - 1]));
        let windows: Vec<(Ids, usize)> = made.iter().map(|made| (made.window, made.wanted.label)).collect();
        let limit = MOST_SLIVERS * (self.site.range.1 - self.site.range.0);
        let pieces = comparison.pieces(self.site.range, &windows, limit)?;
        let earlier = self.made.iter().map(|made| Kept { center: made.wanted.center, ids: made.wanted.ids });
        // Outside of the pieces nothing changes; inside, a context may still keep its label.
        let meets = |kept: &Kept| pieces.iter().any(|p| kept.ids.0 <= p.ids.1 && p.ids.0 <= kept.ids.1);
        let changes = |kept: &Kept| meets(kept) && comparison.at(kept.ids) != Transition::None;
        let touched = self.kept.iter().copied().chain(earlier).filter(changes);
        let nearest = touched.min_by(|a, b| distance(a, wanted).total_cmp(&distance(b, wanted)));
        if let Some(near) = nearest {
            let (found, own) = (distance(&near, wanted), pieces.iter().filter(|piece| piece.change.is_some()));
            let far = own.map(|piece| (wanted.center - piece.ids.0).max(piece.ids.1 - wanted.center));
            let needed = far.fold(0.0, f64::max) + 0.5 * (near.ids.1 - near.ids.0);
            return Some(Err(TooNear { found, needed: needed.max(found.next_up()) }));
        }
        let slivers: f64 =
            pieces.iter().filter(|piece| piece.change.is_none()).map(|piece| piece.ids.1 - piece.ids.0).sum();
        let last = made.pop()?;
        Some(Ok(TriedBump { made: Made { pieces, ..last }, slivers }))
    }
}

fn distance(kept: &Kept, wanted: &WantedLabel) -> f64 {
    (kept.center - wanted.center).abs()
}
