//! Halfspaces that hold some points and none of others: how many words with one label share a hidden unit.
//!
//! In 64 dimensions the sum of a few words' codes is closer to each of them than to any other of 20,000 words, and a few steps of
//! the perceptron rule stretch that to a dozen words or more. With codes of +1 and -1 all of it is exact integer
//! arithmetic.

use rayon::prelude::*;

use crate::kernels::{self, Real as _};
use crate::matrix::Matrix;

/// The halfspace `normal . x > threshold`.
#[derive(Debug, Clone, PartialEq)]
pub struct Halfspace {
    /// Its normal vector.
    pub normal: Vec<f32>,
    /// Halfway between the points it must not hold and those it was made for.
    pub threshold: f32,
    /// `normal . x - threshold` for the points it was made for is at least this, and at most minus this for the others.
    pub margin: f32,
    /// All points inside.
    pub holds: Vec<u32>,
}

/// Points, prepared for inner products of one of them with all of them.
pub struct Points {
    rows: Matrix<f32>,
    /// The signs of points with entries +1 and -1, 64 to a word.
    signs: Option<Vec<Vec<u64>>>,
}

impl Points {
    /// Points as rows.
    pub fn new(rows: Matrix<f32>) -> Self {
        let signs = rows.data.iter().all(|x| x.abs() == 1.0).then(|| {
            let bits = |chunk: &[f32]| chunk.iter().enumerate().fold(0, |b, (i, &x)| b | u64::from(x > 0.0) << i);
            let blocks = rows.cols.div_ceil(64);
            (0..blocks)
                .map(|b| rows.iter_rows().map(|row| bits(&row[b * 64..row.len().min(b * 64 + 64)])).collect())
                .collect()
        });
        Self { rows, signs }
    }

    /// How many points there are.
    pub fn len(&self) -> usize {
        self.rows.rows
    }

    /// Point `i`.
    pub fn row(&self, i: usize) -> &[f32] {
        self.rows.row(i)
    }

    /// `scores[x] += factor (point . x)` for every point x.
    pub fn add_products(&self, point: usize, factor: f32, scores: &mut [f32]) {
        if let Some(signs) = &self.signs {
            // Codes that differ in h of D entries have inner product D - 2h.
            let d = self.rows.cols as f32;
            for (b, column) in signs.iter().enumerate() {
                let (own, d) = (column[point], if b == 0 { d } else { 0.0 });
                kernels::vectorized(
                    #[inline(always)]
                    || {
                        for (score, &code) in scores.iter_mut().zip(column) {
                            *score += factor * (d - 2.0 * (own ^ code).count_ones() as i32 as f32);
                        }
                    },
                );
            }
        } else {
            let own = self.row(point);
            for (score, x) in scores.iter_mut().zip(self.rows.iter_rows()) {
                *score += factor * own.iter().zip(x).map(|(a, b)| a * b).sum::<f32>();
            }
        }
    }

    /// The largest `normal . x` over all other points: how far a gate for this point alone, with the point itself as its
    /// normal, tells it from the rest.
    pub fn nearest_other(&self, point: usize) -> f32 {
        let mut scores = vec![0.0; self.len()];
        self.add_products(point, 1.0, &mut scores);
        scores[point] = f32::NEG_INFINITY;
        scores.into_iter().fold(f32::NEG_INFINITY, f32::max)
    }
}

/// Targets of one cover that are worked on together: small enough to spread over threads, large enough to find targets
/// that are near each other.
const BATCH: usize = 1024;

/// Halfspaces that together hold every target and none of the points that `forbidden` marks.
///
/// `None` names a target that no halfspace found here tells from the forbidden points.
pub fn cover(points: &Points, targets: &[usize], forbidden: &[bool]) -> Result<Vec<Halfspace>, usize> {
    let forbidden: Vec<f32> = forbidden.iter().map(|&f| f32::from(u8::from(f))).collect();
    let batches: Vec<Result<Vec<Halfspace>, usize>> =
        targets.par_chunks(BATCH).map(|targets| Cover { points, targets, forbidden: &forbidden }.run()).collect();
    Ok(batches.into_iter().collect::<Result<Vec<_>, _>>()?.concat())
}

struct Cover<'a> {
    points: &'a Points,
    targets: &'a [usize],
    /// 1 for forbidden points, 0 for others.
    forbidden: &'a [f32],
}

/// A halfspace on its way: its normal, the products of all points with it, and the targets it must hold.
#[derive(Clone)]
struct Candidate {
    normal: Vec<f32>,
    scores: Vec<f32>,
    members: Vec<usize>,
}

impl Cover<'_> {
    /// Perceptron steps that a new member may cost.
    const STEPS: usize = 12;
    /// Members that may be refused before a halfspace is called full.
    const REFUSALS: usize = 3;
    /// Steps for a halfspace with a single member, which must succeed.
    const LAST_STEPS: usize = 2000;

    fn run(&self) -> Result<Vec<Halfspace>, usize> {
        let mut open: Vec<usize> = self.targets.to_vec();
        let mut found = Vec::new();
        while let Some(&seed) = open.first() {
            let empty = Candidate {
                normal: vec![0.0; self.points.rows.cols],
                scores: vec![0.0; self.points.len()],
                members: Vec::new(),
            };
            let mut best = self.with(&empty, seed, Self::LAST_STEPS).ok_or(seed)?;
            let mut refused = Vec::new();
            while refused.len() < Self::REFUSALS {
                let outside = |t: &&usize| !best.members.contains(t) && !refused.contains(*t);
                let nearest = open.iter().filter(outside).max_by(|&&a, &&b| best.scores[a].total_cmp(&best.scores[b]));
                let Some(&next) = nearest else { break };
                match self.with(&best, next, Self::STEPS) {
                    Some(larger) => best = larger,
                    None => refused.push(next),
                }
            }
            let (low, high) = (self.highest_forbidden(&best), self.lowest_member(&best).1);
            // Targets that came along for free need not be members of another halfspace.
            open.retain(|&t| best.scores[t] < high);
            let margin = (high - low) / 2.0;
            let threshold = high - margin;
            let holds = (0..self.points.len() as u32).filter(|&i| best.scores[i as usize] > threshold).collect();
            found.push(Halfspace { normal: best.normal, threshold, margin, holds });
        }
        Ok(found)
    }

    /// The candidate with one more member, after perceptron steps on its worst member and its worst forbidden point.
    fn with(&self, old: &Candidate, member: usize, steps: usize) -> Option<Candidate> {
        let mut candidate = old.clone();
        candidate.members.push(member);
        self.step(&mut candidate, member, 1.0);
        for _ in 0..steps {
            let (low, (weak, high)) = (self.highest_forbidden(&candidate), self.lowest_member(&candidate));
            if high > low {
                return Some(candidate);
            }
            let at_top = |i: &usize| candidate.scores[*i] == low && self.forbidden[*i] == 1.0;
            let bad = (0..self.points.len()).find(at_top);
            self.step(&mut candidate, weak, 1.0);
            // Where the origin is the worst, a longer normal is all it takes.
            if let Some(bad) = bad.filter(|_| low > 0.0) {
                self.step(&mut candidate, bad, -1.0);
            }
        }
        None
    }

    fn step(&self, candidate: &mut Candidate, point: usize, factor: f32) {
        candidate.normal.iter_mut().zip(self.points.row(point)).for_each(|(n, x)| *n += factor * x);
        self.points.add_products(point, factor, &mut candidate.scores);
    }

    /// The highest score of a forbidden point. Where nothing is forbidden the origin still is, so that a halfspace never
    /// holds an unknown word, whose code is 0.
    fn highest_forbidden(&self, candidate: &Candidate) -> f32 {
        kernels::vectorized(
            #[inline(always)]
            || {
                // Scores of allowed points are multiplied away; the origin's 0 is forbidden in any case.
                let mut lanes = [0.0_f32; 16];
                let (scores, rest) = candidate.scores.as_chunks::<16>();
                let (factors, rest_factors) = self.forbidden.as_chunks::<16>();
                for (score, factor) in scores.iter().zip(factors) {
                    for l in 0..16 {
                        lanes[l] = lanes[l].larger(score[l] * factor[l]);
                    }
                }
                for (score, factor) in rest.iter().zip(rest_factors) {
                    lanes[0] = lanes[0].larger(score * factor);
                }
                kernels::largest(&lanes)
            },
        )
    }

    fn lowest_member(&self, candidate: &Candidate) -> (usize, f32) {
        let score = |&m: &usize| (m, candidate.scores[m]);
        candidate.members.iter().map(score).min_by(|a, b| a.1.total_cmp(&b.1)).expect("a seed at least")
    }
}
