//! Halfspaces that hold some points and none of others: how many words with one label share a hidden unit.
//!
//! In 64 dimensions the sum of a few words' codes is closer to each of them than to any other of 20,000 words, and a few steps of
//! the perceptron rule stretch that to a dozen words or more. With codes of +1 and -1 all of it is exact integer
//! arithmetic, even in single precision. Other codes are scaled, words and places each by a power of two of their own, so
//! that neither drowns in the other's rounding, and scores are kept in double precision; a halfspace must then tell
//! its points apart by more than its rounding.

use rayon::prelude::*;

use crate::arithmetic::kernels::{self, Real};
use crate::arithmetic::matrix::Matrix;

/// The halfspace `normal . x > threshold`.
#[derive(Debug, Clone, PartialEq)]
pub struct Halfspace {
    /// Its normal vector.
    pub normal: Vec<f64>,
    /// Halfway between the points it must not hold and those it was made for.
    pub threshold: f64,
    /// `normal . x - threshold` for the points it was made for is at least this, and at most minus this for the others, but
    /// for the rounding of codes that are not signs.
    pub margin: f64,
    /// All points inside.
    pub holds: Vec<u32>,
}

/// Codes, prepared for inner products of one of them with all of them.
pub struct Codes {
    rows: Matrix<f64>,
    /// The codes over a power of two that makes the largest entry a number from 1 to 2.
    scaled: Matrix<f64>,
    /// One over that power.
    scale: f64,
    /// The length of the longest scaled code.
    longest: f64,
    /// The signs of codes with entries +1 and -1, 64 to a word: one list per 64 columns.
    signs: Option<Vec<Vec<u64>>>,
}

/// The scores of points: single precision where it is exact, double where it is not.
trait Score: Real {
    /// A small whole number.
    fn whole(count: i32) -> Self;
}

impl Score for f32 {
    #[inline]
    fn whole(count: i32) -> Self {
        count as f32
    }
}

impl Score for f64 {
    #[inline]
    fn whole(count: i32) -> Self {
        f64::from(count)
    }
}

impl Codes {
    /// Codes as rows.
    pub fn new(rows: Matrix<f64>) -> Self {
        let signs = rows.data.iter().all(|x| x.abs() == 1.0).then(|| {
            let bits = |chunk: &[f64]| chunk.iter().enumerate().fold(0, |b, (i, &x)| b | (u64::from(x > 0.0) << i));
            let list =
                |start: usize| rows.iter_rows().map(|row| bits(&row[start..row.len().min(start + 64)])).collect();
            (0..rows.cols).step_by(64).map(list).collect()
        });
        let largest = rows.data.iter().fold(0.0_f64, |m, x| m.max(x.abs()));
        // A power of two whose inverse is one as well.
        let exponent = if largest > 0.0 { largest.log2().floor().clamp(-1000.0, 1000.0) } else { 0.0 };
        let scale = (-exponent).exp2();
        let scaled = rows.map(|x| x * scale);
        let longest = scaled.iter_rows().map(length).fold(0.0, f64::max);
        Self { rows, scaled, scale, longest, signs }
    }

    /// Code `i`.
    pub fn row(&self, i: usize) -> &[f64] {
        self.rows.row(i)
    }

    /// `scores[x] += factor (code . x)` for every scaled code x.
    fn add_products<S: Score>(&self, code: usize, factor: S, scores: &mut [S]) {
        let Some(signs) = &self.signs else {
            let own = self.scaled.row(code);
            for (score, x) in scores.iter_mut().zip(self.scaled.iter_rows()) {
                *score += factor * S::from_f64(own.iter().zip(x).map(|(a, b)| a * b).sum());
            }
            return;
        };
        // Codes that differ in h of D entries have inner product D - 2h.
        let d = self.rows.cols as i32;
        for (b, column) in signs.iter().enumerate() {
            let (own, d) = (column[code], S::whole(if b == 0 { d } else { 0 }));
            let two = S::whole(2);
            kernels::vectorized(
                #[inline(always)]
                || {
                    for (score, &other) in scores.iter_mut().zip(column) {
                        *score += factor * (d - two * S::whole((own ^ other).count_ones() as i32));
                    }
                },
            );
        }
    }
}

/// The length of a vector.
fn length(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// Points to be covered: words, or words at places. The code of a point is its word's, then its place's.
pub struct CodePoints<'a> {
    words: &'a Codes,
    places: Option<&'a Codes>,
    list: &'a [(u32, u32)],
    /// The points of word w are `starts[w]..starts[w + 1]`.
    starts: Vec<usize>,
}

/// The inner products of a normal vector with words and with places. A point's is the sum of its two.
#[derive(Clone)]
struct CodeScores<S> {
    words: Vec<S>,
    places: Vec<S>,
}

/// Words whose scores are looked at together: most such blocks are out of reach as a whole.
const BLOCK: usize = 64;

impl<'a> CodePoints<'a> {
    /// Points given by word and place, sorted. Without places, points are words, and all places must be 0.
    pub fn new(words: &'a Codes, places: Option<&'a Codes>, list: &'a [(u32, u32)]) -> Self {
        let starts = (0..=words.rows.rows).map(|w| list.partition_point(|&(word, _)| (word as usize) < w)).collect();
        Self { words, places, list, starts }
    }

    /// The word of a point.
    pub fn word(&self, point: usize) -> usize {
        self.list[point].0 as usize
    }

    /// Whether all codes are signs.
    fn is_exact(&self) -> bool {
        self.words.signs.is_some() && self.places.is_none_or(|places| places.signs.is_some())
    }

    /// The length of the longest scaled code.
    fn longest(&self) -> f64 {
        self.words.longest + self.places.map_or(0.0, |places| places.longest)
    }

    fn zero<S: Score>(&self) -> CodeScores<S> {
        let places = self.places.map_or(1, |places| places.rows.rows);
        CodeScores { words: vec![S::ZERO; self.words.rows.rows], places: vec![S::ZERO; places] }
    }

    /// The scaled code of a point.
    fn code(&self, point: usize) -> Vec<f64> {
        let (word, place) = self.list[point];
        let place = self.places.map_or(&[][..], |places| places.scaled.row(place as usize));
        [self.words.scaled.row(word as usize), place].concat()
    }

    /// A normal to scaled codes as one to the codes themselves.
    fn normal(&self, scaled: &[f64]) -> Vec<f64> {
        let (word, place) = scaled.split_at(self.words.rows.cols);
        let place_scale = self.places.map_or(1.0, |places| places.scale);
        word.iter().map(|x| x * self.words.scale).chain(place.iter().map(|x| x * place_scale)).collect()
    }

    fn step<S: Score>(&self, point: usize, factor: S, scores: &mut CodeScores<S>) {
        let (word, place) = self.list[point];
        self.words.add_products(word as usize, factor, &mut scores.words);
        if let Some(places) = self.places {
            places.add_products(place as usize, factor, &mut scores.places);
        }
    }

    fn score<S: Score>(&self, point: usize, scores: &CodeScores<S>) -> S {
        let (word, place) = self.list[point];
        scores.words[word as usize] + scores.places[place as usize]
    }

    /// Calls `see` with the points that may score above `floor`, which `see` may raise.
    fn visit_above<S: Score>(&self, scores: &CodeScores<S>, mut floor: S, mut see: impl FnMut(usize, S, &mut S)) {
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
                if *score + top > floor {
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
pub fn cover(points: &CodePoints, targets: &[usize], forbidden: &[bool]) -> Result<Vec<Halfspace>, usize> {
    let of_batch = |targets: &[usize]| {
        let cover = Cover { points, targets, forbidden };
        if points.is_exact() { cover.run::<f32>() } else { cover.run::<f64>() }
    };
    let batches: Vec<Result<Vec<Halfspace>, usize>> = targets.par_chunks(BATCH).map(of_batch).collect();
    Ok(batches.into_iter().collect::<Result<Vec<_>, _>>()?.concat())
}

struct Cover<'a> {
    points: &'a CodePoints<'a>,
    targets: &'a [usize],
    forbidden: &'a [bool],
}

/// A halfspace on its way: its normal to scaled codes, the scores of all points, and the targets it must hold.
#[derive(Clone)]
struct Candidate<S> {
    normal: Vec<f64>,
    scores: CodeScores<S>,
    members: Vec<usize>,
}

impl Cover<'_> {
    /// Perceptron steps that a new member may cost.
    const STEPS: usize = 12;
    /// Members that may be refused before a halfspace is called full.
    const REFUSALS: usize = 3;
    /// Steps for a halfspace with a single member, which must succeed.
    const LAST_STEPS: usize = 2000;
    /// Scores of codes that are not signs are rounded by less than this part of the lengths of normal and code: 2^-53 for
    /// each of some thousand steps and terms.
    const ROUNDING: f64 = 1.0 / (1_u64 << 36) as f64;

    fn run<S: Score>(&self) -> Result<Vec<Halfspace>, usize> {
        let mut open: Vec<usize> = self.targets.to_vec();
        let mut found = Vec::new();
        while let Some(&seed) = open.first() {
            let columns = self.points.code(seed).len();
            let empty = Candidate::<S> { normal: vec![0.0; columns], scores: self.points.zero(), members: Vec::new() };
            let first = self.with(&empty, seed, Self::LAST_STEPS).or_else(|| self.alone(&empty, seed));
            let mut best = first.ok_or(seed)?;
            let mut refused = Vec::new();
            while refused.len() < Self::REFUSALS {
                let score = |t: usize| self.points.score(t, &best.scores).to_f64();
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
            open.retain(|&t| self.points.score(t, &best.scores).to_f64() < high);
            let mut holds = Vec::new();
            self.points.visit_above(&best.scores, S::from_f64(threshold), |point, score, _| {
                if score.to_f64() > threshold {
                    holds.push(point as u32);
                }
            });
            found.push(Halfspace { normal: self.points.normal(&best.normal), threshold, margin, holds });
        }
        Ok(found)
    }

    /// The candidate with one more member, after perceptron steps on its worst member and its worst forbidden point.
    fn with<S: Score>(&self, old: &Candidate<S>, member: usize, steps: usize) -> Option<Candidate<S>> {
        let mut candidate = old.clone();
        candidate.members.push(member);
        self.step(&mut candidate, member, 1.0);
        for _ in 0..steps {
            let ((bad, low), (weak, high)) = (self.highest_forbidden(&candidate), self.lowest_member(&candidate));
            if self.apart(&candidate, low, high) {
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

    /// A halfspace around one point among codes of very different sizes, where steps by whole codes are too short or too
    /// long: steps lead to where the point's score is 1, and that of the worst forbidden point 0.
    fn alone<S: Score>(&self, empty: &Candidate<S>, member: usize) -> Option<Candidate<S>> {
        let square = |point: usize| self.points.code(point).iter().map(|x| x * x).sum::<f64>();
        let mut candidate = empty.clone();
        candidate.members.push(member);
        let steps = if self.points.is_exact() { 0 } else { Self::LAST_STEPS };
        for _ in 0..steps {
            let high = self.points.score(member, &candidate.scores).to_f64();
            self.step(&mut candidate, member, (1.0 - high) / square(member));
            let ((bad, low), (_, high)) = (self.highest_forbidden(&candidate), self.lowest_member(&candidate));
            if low < high / 2.0 && self.apart(&candidate, low, high) {
                return Some(candidate);
            }
            self.step(&mut candidate, bad?, -low / square(bad?));
        }
        None
    }

    /// Whether the members' scores are above those of forbidden points, whatever rounding did to them.
    fn apart<S>(&self, candidate: &Candidate<S>, low: f64, high: f64) -> bool {
        let rounding = if self.points.is_exact() {
            0.0
        } else {
            Self::ROUNDING * length(&candidate.normal) * self.points.longest()
        };
        high - low > rounding
    }

    fn step<S: Score>(&self, candidate: &mut Candidate<S>, point: usize, factor: f64) {
        candidate.normal.iter_mut().zip(self.points.code(point)).for_each(|(n, x)| *n += factor * x);
        self.points.step(point, S::from_f64(factor), &mut candidate.scores);
    }

    /// The forbidden point with the highest score. Where nothing is forbidden the origin still is, so that a halfspace never
    /// holds an unknown word, whose code is 0.
    fn highest_forbidden<S: Score>(&self, candidate: &Candidate<S>) -> (Option<usize>, f64) {
        let mut best = (None, 0.0);
        self.points.visit_above(&candidate.scores, S::ZERO, |point, score, floor| {
            if self.forbidden[point] && score > *floor {
                *floor = score;
                best = (Some(point), score.to_f64());
            }
        });
        best
    }

    fn lowest_member<S: Score>(&self, candidate: &Candidate<S>) -> (usize, f64) {
        let score = |&m: &usize| (m, self.points.score(m, &candidate.scores).to_f64());
        candidate.members.iter().map(score).min_by(|a, b| a.1.total_cmp(&b.1)).expect("a seed at least")
    }
}
