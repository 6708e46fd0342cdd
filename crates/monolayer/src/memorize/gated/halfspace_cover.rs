//! Halfspaces that hold some points and none of others: how many words with one label share a hidden unit.
//!
//! In 64 dimensions the sum of a few words' codes is closer to each of them than to any other of 20,000 words, and a few steps of
//! the perceptron rule stretch that to a dozen words or more. With codes of +1 and -1 all of it is exact integer
//! arithmetic.

use rayon::prelude::*;

use crate::kernels;
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

/// Codes, prepared for inner products of one of them with all of them.
pub struct Codes {
    rows: Matrix<f32>,
    /// The signs of codes with entries +1 and -1, 64 to a word: one list per 64 columns.
    signs: Option<Vec<Vec<u64>>>,
}

impl Codes {
    /// Codes as rows.
    pub fn new(rows: Matrix<f32>) -> Self {
        let signs = rows.data.iter().all(|x| x.abs() == 1.0).then(|| {
            let bits = |chunk: &[f32]| chunk.iter().enumerate().fold(0, |b, (i, &x)| b | (u64::from(x > 0.0) << i));
            let list =
                |start: usize| rows.iter_rows().map(|row| bits(&row[start..row.len().min(start + 64)])).collect();
            (0..rows.cols).step_by(64).map(list).collect()
        });
        Self { rows, signs }
    }

    /// Code `i`.
    pub fn row(&self, i: usize) -> &[f32] {
        self.rows.row(i)
    }

    /// `scores[x] += factor (code . x)` for every code x.
    fn add_products(&self, code: usize, factor: f32, scores: &mut [f32]) {
        let Some(signs) = &self.signs else {
            let own = self.row(code);
            for (score, x) in scores.iter_mut().zip(self.rows.iter_rows()) {
                *score += factor * own.iter().zip(x).map(|(a, b)| a * b).sum::<f32>();
            }
            return;
        };
        // Codes that differ in h of D entries have inner product D - 2h.
        let d = self.rows.cols as f32;
        for (b, column) in signs.iter().enumerate() {
            let (own, d) = (column[code], if b == 0 { d } else { 0.0 });
            kernels::vectorized(
                #[inline(always)]
                || {
                    for (score, &other) in scores.iter_mut().zip(column) {
                        *score += factor * (d - 2.0 * (own ^ other).count_ones() as i32 as f32);
                    }
                },
            );
        }
    }
}

/// Points to be covered: words, or words at places. The code of a point is its word's, then its place's.
pub struct Points<'a> {
    words: &'a Codes,
    places: Option<&'a Codes>,
    list: &'a [(u32, u32)],
    /// The points of word w are `starts[w]..starts[w + 1]`.
    starts: Vec<usize>,
}

/// The inner products of a normal vector with words and with places. A point's is the sum of its two.
#[derive(Clone)]
struct Scores {
    words: Vec<f32>,
    places: Vec<f32>,
}

/// Words whose scores are looked at together: most such blocks are out of reach as a whole.
const BLOCK: usize = 64;

impl<'a> Points<'a> {
    /// Points given by word and place, sorted. Without places, points are words, and all places must be 0.
    pub fn new(words: &'a Codes, places: Option<&'a Codes>, list: &'a [(u32, u32)]) -> Self {
        let starts = (0..=words.rows.rows).map(|w| list.partition_point(|&(word, _)| (word as usize) < w)).collect();
        Self { words, places, list, starts }
    }

    /// The word of a point.
    pub fn word(&self, point: usize) -> usize {
        self.list[point].0 as usize
    }

    fn zero(&self) -> Scores {
        let places = self.places.map_or(1, |places| places.rows.rows);
        Scores { words: vec![0.0; self.words.rows.rows], places: vec![0.0; places] }
    }

    fn code(&self, point: usize) -> Vec<f32> {
        let (word, place) = self.list[point];
        let place = self.places.map_or(&[][..], |places| places.row(place as usize));
        [self.words.row(word as usize), place].concat()
    }

    fn step(&self, point: usize, factor: f32, scores: &mut Scores) {
        let (word, place) = self.list[point];
        self.words.add_products(word as usize, factor, &mut scores.words);
        if let Some(places) = self.places {
            places.add_products(place as usize, factor, &mut scores.places);
        }
    }

    fn score(&self, point: usize, scores: &Scores) -> f32 {
        let (word, place) = self.list[point];
        scores.words[word as usize] + scores.places[place as usize]
    }

    /// Calls `see` with the points that may score above `floor`, which `see` may raise.
    fn visit_above(&self, scores: &Scores, mut floor: f32, mut see: impl FnMut(usize, f32, &mut f32)) {
        let top = kernels::largest(&scores.places);
        for (b, block) in scores.words.chunks(BLOCK).enumerate() {
            let largest = kernels::vectorized(
                #[inline(always)]
                || kernels::largest(block),
            );
            if largest + top <= floor {
                continue;
            }
            for (w, score) in (b * BLOCK..).zip(block) {
                if score + top > floor {
                    for point in self.starts[w]..self.starts[w + 1] {
                        see(point, self.score(point, scores), &mut floor);
                    }
                }
            }
        }
    }
}

/// Targets of one cover that are worked on together: small enough to spread over threads, large enough to find targets
/// that are near each other.
const BATCH: usize = 1024;

/// Halfspaces that together hold every target and none of the points that `forbidden` marks. The error is a target that no
/// halfspace found here tells from the forbidden points.
pub fn cover(points: &Points, targets: &[usize], forbidden: &[bool]) -> Result<Vec<Halfspace>, usize> {
    let batches: Vec<Result<Vec<Halfspace>, usize>> =
        targets.par_chunks(BATCH).map(|targets| Cover { points, targets, forbidden }.run()).collect();
    Ok(batches.into_iter().collect::<Result<Vec<_>, _>>()?.concat())
}

struct Cover<'a> {
    points: &'a Points<'a>,
    targets: &'a [usize],
    forbidden: &'a [bool],
}

/// A halfspace on its way: its normal, the scores of all points, and the targets it must hold.
#[derive(Clone)]
struct Candidate {
    normal: Vec<f32>,
    scores: Scores,
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
            let columns = self.points.code(seed).len();
            let empty = Candidate { normal: vec![0.0; columns], scores: self.points.zero(), members: Vec::new() };
            let mut best = self.with(&empty, seed, Self::LAST_STEPS).ok_or(seed)?;
            let mut refused = Vec::new();
            while refused.len() < Self::REFUSALS {
                let score = |t: usize| self.points.score(t, &best.scores);
                let outside = |t: &&usize| !best.members.contains(t) && !refused.contains(*t);
                let nearest = open.iter().filter(outside).max_by(|&&a, &&b| score(a).total_cmp(&score(b)));
                let Some(&next) = nearest else { break };
                match self.with(&best, next, Self::STEPS) {
                    Some(larger) => best = larger,
                    None => refused.push(next),
                }
            }
            let (low, high) = (self.highest_forbidden(&best).1, self.lowest_member(&best).1);
            let margin = (high - low) / 2.0;
            let threshold = high - margin;
            // Targets that came along for free need not be members of another halfspace.
            open.retain(|&t| self.points.score(t, &best.scores) < high);
            let mut holds = Vec::new();
            self.points.visit_above(&best.scores, threshold, |point, score, _| {
                if score > threshold {
                    holds.push(point as u32);
                }
            });
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
            let ((bad, low), (weak, high)) = (self.highest_forbidden(&candidate), self.lowest_member(&candidate));
            if high > low {
                return Some(candidate);
            }
            self.step(&mut candidate, weak, 1.0);
            // Where the origin is the worst, a longer normal is all it takes.
            if let Some(bad) = bad {
                self.step(&mut candidate, bad, -1.0);
            }
        }
        None
    }

    fn step(&self, candidate: &mut Candidate, point: usize, factor: f32) {
        candidate.normal.iter_mut().zip(self.points.code(point)).for_each(|(n, x)| *n += factor * x);
        self.points.step(point, factor, &mut candidate.scores);
    }

    /// The forbidden point with the highest score. Where nothing is forbidden the origin still is, so that a halfspace never
    /// holds an unknown word, whose code is 0.
    fn highest_forbidden(&self, candidate: &Candidate) -> (Option<usize>, f32) {
        let mut best = (None, 0.0);
        self.points.visit_above(&candidate.scores, 0.0, |point, score, floor| {
            if self.forbidden[point] && score > *floor {
                *floor = score;
                best = (Some(point), score);
            }
        });
        best
    }

    fn lowest_member(&self, candidate: &Candidate) -> (usize, f32) {
        let score = |&m: &usize| (m, self.points.score(m, &candidate.scores));
        candidate.members.iter().map(score).min_by(|a, b| a.1.total_cmp(&b.1)).expect("a seed at least")
    }
}
