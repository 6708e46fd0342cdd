//! Halfspaces that hold some points and none of others: how many words with one label, or contexts with one, share a hidden unit.
//!
//! In 64 dimensions the sum of a few words' codes is closer to each of them than to any other of 20,000 words, and a few steps of
//! the perceptron rule stretch that to a dozen words or more. With codes of +1 and -1 all of it is exact integer
//! arithmetic, even in single precision. With other codes a halfspace must tell its points apart by more than its rounding.
//! Contexts have one more coordinate, their id. What a normal vector says of the contexts of one point is linear in it, so that
//! the lowest and the highest id of those that matter stand for all of them.

use super::code_points::{CodePoints, CodeScores, WordSpans, length, on_grid};
use crate::arithmetic::kernels;
use crate::arithmetic::parallel;

/// The halfspace `normal . x + id g > threshold`.
#[derive(Debug, Clone, PartialEq)]
pub struct Halfspace {
    /// Its normal vector, as far as codes go.
    pub normal: Vec<f64>,
    /// Its weight on the id.
    pub id: f64,
    /// Halfway between the points it must not hold and those it was made for.
    pub threshold: f64,
    /// `normal . x + id g - threshold` for the points it was made for is at least this, and at most minus this for the others, but
    /// for the rounding of codes that are not signs.
    pub margin: f64,
    /// All points inside; where points have contexts, nothing.
    pub holds: Vec<u32>,
    /// The targets inside by its margin, by number.
    pub members: Vec<usize>,
}

/// How long halfspaces are searched for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CoverEffort {
    /// Perceptron steps that a new member may cost.
    pub steps: usize,
    /// Members that may be refused before a halfspace is called full.
    pub refusals: usize,
    /// New members that may be tried at once.
    pub together: usize,
    /// Targets of one cover that are worked on together: small enough to spread over threads, large enough to find targets
    /// that are near each other.
    pub batch: usize,
}

impl CoverEffort {
    /// For a single target.
    pub const ALONE: Self = Self { steps: 1, refusals: 0, together: 1, batch: 1 };
}

/// What a halfspace must hold: some contexts of a point, with coordinates of ids from the first to the second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Target {
    /// The point.
    pub point: usize,
    /// The lowest and the highest coordinate.
    pub ids: (f64, f64),
}

/// What halfspaces may not hold: of each point the contexts with coordinates from the first to the second, or none.
pub type Forbidden = [Option<(f64, f64)>];

/// Halfspaces that together hold every target, and nothing that is forbidden. Targets that no halfspace found here
/// tells from what is forbidden are left out and listed.
pub fn cover(
    points: &CodePoints,
    targets: &[Target],
    forbidden: &Forbidden,
    effort: CoverEffort,
) -> (Vec<Halfspace>, Vec<usize>) {
    let spans = points.spans(forbidden);
    let of_batch = |b: usize, targets: &[Target]| {
        Cover { points, targets, forbidden, spans: &spans, effort, first: b * effort.batch }.run()
    };
    let batches = parallel::map_chunks(targets, effort.batch, of_batch);
    let (found, failed): (Vec<_>, Vec<_>) = batches.into_iter().unzip();
    (found.concat(), failed.concat())
}

struct Cover<'a> {
    points: &'a CodePoints<'a>,
    targets: &'a [Target],
    forbidden: &'a Forbidden,
    /// The forbidden contexts of each word.
    spans: &'a WordSpans,
    effort: CoverEffort,
    /// The number of the first target.
    first: usize,
}

/// A point at a coordinate of ids.
type Sample = (usize, f64);

/// A halfspace on its way: its normal to scaled codes, its weight of ids, the targets it must hold, and forbidden points that
/// have come near it: steps look at these alone, until all points are looked at again.
#[derive(Clone, Default)]
struct Candidate {
    normal: Vec<f64>,
    id: f64,
    members: Vec<usize>,
    near: Vec<Sample>,
}

impl Cover<'_> {
    /// Steps for a halfspace with a single member, where there is no other way.
    const LAST_STEPS: usize = 2000;
    /// How often all points are looked at for one new member.
    const ROUNDS: usize = 12;
    /// How many forbidden points are taken note of each time.
    const NOTED: usize = 32;
    /// Scores of codes that are not signs are rounded by less than this part of the lengths of normal and code: 2^-53 for
    /// each of some thousand steps and terms.
    const ROUNDING: f64 = 1.0 / (1_u64 << 36) as f64;
    /// Where the id is read, single precision rounds, each time by 2^-24 of the sizes of the terms at most. Members and
    /// forbidden points are to be apart by many times that, whatever precision is taken in the end.
    const ID_ROUNDING: f64 = 1.0 / (1_u64 << 15) as f64;
    /// So far are they to be apart at least, if codes are signs: wide margins keep outputs small.
    const LEAST_GAP: f64 = 0.25;

    fn run(&self) -> (Vec<Halfspace>, Vec<usize>) {
        let mut open: Vec<usize> = (0..self.targets.len()).collect();
        let (mut found, mut failed) = (Vec::new(), Vec::new());
        let empty = Candidate { normal: vec![0.0; self.points.columns()], ..Candidate::default() };
        let empty = (empty, self.points.zero_scores());
        let mut together = 1;
        while let Some(&seed) = open.first() {
            let first = self.with(&empty, &[seed], Self::LAST_STEPS).or_else(|| self.alone(&empty.0, seed));
            let Some(first) = first else {
                failed.push(self.first + seed);
                open.remove(0);
                continue;
            };
            let (best, scores) = self.grown(first, &open, together);
            // Of a halfspace that is likely to hold as many, a few at once are not too many.
            together = (best.members.len() / 4).clamp(1, self.effort.together);
            let (low, high) = (self.highest_forbidden(&scores).1, self.lowest_member(&best, &scores));
            let halfspace = self.halfspace(&best, &scores, low, high);
            // Targets that came along for free need not be members of another halfspace.
            let left = |t: &usize| self.target_score(*t, &scores).1 < high;
            let members = open.iter().filter(|t| !left(t)).map(|t| self.first + t).collect();
            open.retain(left);
            found.push(Halfspace { members, ..halfspace });
        }
        (found, failed)
    }

    /// The candidate with as many of the open targets as it will take, the nearest first: some at once, as long as that does.
    fn grown(&self, first: (Candidate, CodeScores), open: &[usize], mut together: usize) -> (Candidate, CodeScores) {
        let mut best = first;
        // Members, and targets that were refused.
        let mut done = vec![false; self.targets.len()];
        best.0.members.iter().for_each(|&m| done[m] = true);
        let mut refused = 0;
        while refused < self.effort.refusals {
            let outside = open.iter().filter(|&&t| !done[t]);
            let mut scored: Vec<(usize, f64)> = outside.map(|&t| (t, self.target_score(t, &best.1).1)).collect();
            let nearest_first = |a: &(usize, f64), b: &(usize, f64)| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0));
            if scored.len() > together {
                scored.select_nth_unstable_by(together, nearest_first);
                scored.truncate(together);
            }
            scored.sort_unstable_by(nearest_first);
            let next: Vec<usize> = scored.iter().map(|&(t, _)| t).collect();
            let Some(&nearest) = next.first() else { break };
            match self.with(&best, &next, self.effort.steps) {
                Some(larger) => {
                    best = larger;
                    next.iter().for_each(|&t| done[t] = true);
                }
                None if next.len() > 1 => together = next.len() / 2,
                None => {
                    done[nearest] = true;
                    refused += 1;
                }
            }
        }
        best
    }

    /// The halfspace between two scores, with what it holds; its members are not known yet.
    fn halfspace(&self, best: &Candidate, scores: &CodeScores, low: f64, high: f64) -> Halfspace {
        let margin = (high - low) / 2.0;
        let threshold = high - margin;
        // All points, those that are neither forbidden nor targets included.
        let all = if self.points.has_ids() { 0 } else { self.forbidden.len() };
        let holds = (0..all as u32).filter(|&p| self.points.score(p as usize, scores) > threshold).collect();
        let id = best.id * self.points.ids.scale;
        Halfspace {
            normal: self.points.normal(&best.normal),
            id,
            threshold: threshold + id * self.points.ids.center,
            margin,
            holds,
            members: Vec::new(),
        }
    }

    /// The candidate with more members, and the scores of all points: perceptron steps tell the members from the forbidden
    /// points that are known to be near, until no other forbidden point is.
    fn with(
        &self,
        (old, old_scores): &(Candidate, CodeScores),
        members: &[usize],
        steps: usize,
    ) -> Option<(Candidate, CodeScores)> {
        let mut candidate = old.clone();
        candidate.members.extend(members);
        let mut scores: Option<CodeScores> = None;
        for _ in 0..Self::ROUNDS {
            if !self.separate(&mut candidate, scores.as_ref().unwrap_or(old_scores), steps) {
                return None;
            }
            let new = self.points.scores(&candidate.normal, candidate.id);
            let floor = self.lowest_member(&candidate, &new) - self.least_gap(&candidate);
            if floor > 0.0 && !self.note_above(&mut candidate, &new, floor) {
                return Some((candidate, new));
            }
            scores = Some(new);
        }
        None
    }

    /// Takes note of the forbidden points with the highest scores above `floor`; whether there are any.
    fn note_above(&self, candidate: &mut Candidate, scores: &CodeScores, floor: f64) -> bool {
        let mut found: Vec<(f64, Sample)> = Vec::new();
        let highest_first = |a: &(f64, Sample), b: &(f64, Sample)| b.0.total_cmp(&a.0).then(a.1.0.cmp(&b.1.0));
        self.points.visit_above(scores, self.spans, floor, |point, score, floor| {
            let Some((x, score)) = self.forbidden_score(point, score, scores.id) else { return };
            if score >= *floor {
                found.push((score, (point, x)));
                if found.len() == 4 * Self::NOTED {
                    found.sort_by(highest_first);
                    found.truncate(Self::NOTED);
                    *floor = found[Self::NOTED - 1].0;
                }
            }
        });
        found.sort_by(highest_first);
        found.truncate(Self::NOTED);
        candidate.near.extend(found.iter().map(|&(_, sample)| sample));
        !found.is_empty()
    }

    /// Perceptron steps on the worst member and the worst forbidden point among those that are known to be near; whether they
    /// led to a halfspace that tells them apart. The scores are those of the candidate as it is given.
    fn separate(&self, candidate: &mut Candidate, all: &CodeScores, steps: usize) -> bool {
        let mut samples: Vec<Sample> = Vec::new();
        for &m in &candidate.members {
            let Target { point, ids: (low, high) } = self.targets[m];
            samples.extend([(point, low), (point, high)].iter().take(if low == high { 1 } else { 2 }));
        }
        let inside = samples.len();
        samples.extend(&candidate.near);
        let codes = self.points.sampled(samples.iter().map(|&(point, _)| point));
        let ids: Vec<f64> = samples.iter().map(|&(_, x)| x).collect();
        let mut scores: Vec<f64> =
            samples.iter().map(|&(point, x)| self.points.score(point, all) + candidate.id * x).collect();
        for _ in 0..steps {
            let weak = (0..inside).min_by(|&a, &b| scores[a].total_cmp(&scores[b])).expect("a member");
            let bad = largest(&scores[inside..]).map(|bad| inside + bad);
            // Where the origin is the worst, a longer normal is all it takes.
            let bad = bad.filter(|&bad| scores[bad] > 0.0);
            let gap = scores[weak] - bad.map_or(0.0, |bad| scores[bad]);
            let missing = if gap < 0.0 { -gap } else { self.least_gap(candidate) - gap };
            if missing < 0.0 {
                return true;
            }
            let step = samples[weak].1 - bad.map_or(0.0, |bad| samples[bad].1);
            let weight = if bad.is_some_and(|bad| samples[bad].0 == samples[weak].0) {
                // Contexts of one word at one place: nothing but the id tells them apart.
                on_grid(1.25 * (missing + self.least_gap(candidate)) / step)
            } else {
                self.points.add(samples[weak].0, 1.0, &mut candidate.normal);
                codes.add(weak, 1.0, &mut scores);
                if let Some(bad) = bad {
                    self.points.add(samples[bad].0, -1.0, &mut candidate.normal);
                    codes.add(bad, -1.0, &mut scores);
                }
                on_grid(step)
            };
            if !weight.is_finite() {
                return false;
            }
            candidate.id += weight;
            kernels::vectorized(
                #[inline(always)]
                || scores.iter_mut().zip(&ids).for_each(|(score, x)| *score += weight * x),
            );
        }
        false
    }

    /// A halfspace around one point among codes of very different sizes, where steps by whole codes are too short or too
    /// long: steps lead to where the point's score is 1, and that of the worst forbidden point 0.
    fn alone(&self, empty: &Candidate, member: usize) -> Option<(Candidate, CodeScores)> {
        let mut candidate = empty.clone();
        candidate.members.push(member);
        let point = self.targets[member].point;
        let steps = if self.points.is_exact() || self.points.has_ids() { 0 } else { Self::LAST_STEPS };
        for _ in 0..steps {
            let high = self.points.product(point, &candidate.normal);
            self.points.add(point, (1.0 - high) / self.points.square(point), &mut candidate.normal);
            let scores = self.points.scores(&candidate.normal, 0.0);
            let ((bad, low), high) = (self.highest_forbidden(&scores), self.lowest_member(&candidate, &scores));
            if low < high / 2.0 && high - low > self.least_gap(&candidate) {
                return Some((candidate, scores));
            }
            let bad = bad?;
            self.points.add(bad, -low / self.points.square(bad), &mut candidate.normal);
        }
        None
    }

    /// How far the members' scores must be above those of forbidden points, whatever rounding did to them.
    fn least_gap(&self, candidate: &Candidate) -> f64 {
        let exact = self.points.is_exact();
        if exact && !self.points.has_ids() {
            // Scores are whole numbers.
            return 0.5;
        }
        let size = (length(&candidate.normal).powi(2) + candidate.id.powi(2)).sqrt() * self.points.longest();
        match (exact, self.points.has_ids()) {
            (true, _) => Self::LEAST_GAP.max(Self::ID_ROUNDING * size / 32.0),
            (false, true) => Self::ID_ROUNDING * size,
            (false, false) => Self::ROUNDING * size,
        }
    }

    /// Where the forbidden contexts of a point score highest, and that score.
    fn forbidden_score(&self, point: usize, score: f64, id: f64) -> Option<(f64, f64)> {
        let (low, high) = self.forbidden[point]?;
        let x = if id * low > id * high { low } else { high };
        Some((x, score + id * x))
    }

    /// The forbidden point with the highest score. Where nothing is forbidden the origin still is, so that a halfspace never
    /// holds an unknown word, whose code is 0.
    fn highest_forbidden(&self, scores: &CodeScores) -> (Option<usize>, f64) {
        let mut best = (None, 0.0);
        self.points.visit_above(scores, self.spans, 0.0, |point, score, floor| {
            let Some((_, score)) = self.forbidden_score(point, score, scores.id) else { return };
            if score > *floor {
                *floor = score;
                best = (Some(point), score);
            }
        });
        best
    }

    /// The coordinate at which a target scores lowest, and that score.
    fn target_score(&self, target: usize, scores: &CodeScores) -> (f64, f64) {
        let Target { point, ids: (low, high) } = self.targets[target];
        let x = if scores.id * low < scores.id * high { low } else { high };
        (x, self.points.score(point, scores) + scores.id * x)
    }

    /// The lowest score of a member.
    fn lowest_member(&self, candidate: &Candidate, scores: &CodeScores) -> f64 {
        candidate.members.iter().map(|&m| self.target_score(m, scores).1).fold(f64::INFINITY, f64::min)
    }
}

/// The last of the largest numbers; nothing where there is none.
fn largest(x: &[f64]) -> Option<usize> {
    if x.is_empty() {
        return None;
    }
    let top = kernels::vectorized(
        #[inline(always)]
        || kernels::largest(x),
    );
    x.iter().rposition(|x| *x == top)
}
