//! Codes of words and places, and points made of them: words, words at places, and their contexts, which differ in the id.
//!
//! Codes of +1 and -1 have whole inner products, exact even in single precision. Other codes are scaled, words and places each
//! by a power of two of their own, so that neither drowns in the other's rounding, and scores are kept in double precision.

use crate::arithmetic::kernels;
use crate::arithmetic::matrix::Matrix;
use crate::arithmetic::sign_codes::SignCodes;

/// Codes, prepared for inner products of one of them with all of them.
pub struct Codes {
    rows: Matrix<f64>,
    /// The codes over a power of two that makes the largest entry a number from 1 to 2.
    scaled: Matrix<f64>,
    /// One over that power.
    scale: f64,
    /// The length of the longest scaled code.
    longest: f64,
    /// The codes as bits, where all entries are +1 and -1.
    signs: Option<SignCodes>,
}

impl Codes {
    /// Codes as rows.
    pub fn new(rows: Matrix<f64>) -> Self {
        let signs = SignCodes::new(&rows, 0..rows.cols);
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

    /// How many codes there are.
    pub fn count(&self) -> usize {
        self.rows.rows
    }

    /// The inner products of all codes with a vector, where they are of +1 and -1.
    pub(crate) fn sign_products(&self, normal: &[f64]) -> Option<Vec<f64>> {
        let mut products = vec![0.0; self.rows.rows];
        self.signs.as_ref()?.products(normal, &mut products);
        Some(products)
    }

    /// The inner products of all scaled codes with a vector, into the first entries of `scores`.
    fn products(&self, normal: &[f64], scores: &mut [f64]) {
        match &self.signs {
            Some(signs) => signs.products(normal, scores),
            None => {
                for (score, code) in scores.iter_mut().zip(self.scaled.iter_rows()) {
                    *score = code.iter().zip(normal).map(|(x, n)| x * n).sum();
                }
            }
        }
    }
}

/// The length of a vector.
pub(super) fn length(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// Ids as a coordinate of points: `(id - center) scale`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IdScale {
    /// What is taken from an id.
    pub center: f64,
    /// A power of two.
    pub scale: f64,
}

impl IdScale {
    /// No ids.
    pub const NONE: Self = Self { center: 0.0, scale: 1.0 };
    /// The standard deviation of the coordinate is from half of this to this.
    const DEVIATION: f64 = 8.0;

    /// The scale for ids with this mean and standard deviation.
    pub fn new(mean: f64, deviation: f64) -> Self {
        let exponent = (Self::DEVIATION / deviation).log2().floor();
        if !exponent.is_finite() || exponent.abs() > 900.0 || !mean.is_finite() {
            return Self::NONE;
        }
        let scale = exponent.exp2();
        // Few bits, so that it rounds nothing to take it away.
        Self { center: (mean * scale).round() / scale, scale }
    }

    /// The coordinate of an id.
    pub fn at(&self, id: f64) -> f64 {
        (id - self.center) * self.scale
    }
}

/// Points to be covered: words, or words at places. The code of a point is its word's, then its place's. A point may have
/// many contexts, which differ in one more coordinate.
pub struct CodePoints<'a> {
    words: &'a Codes,
    places: Option<&'a Codes>,
    list: &'a [(u32, u32)],
    /// The points of word w are `starts[w]..starts[w + 1]`. The word after the last has the code 0.
    starts: Vec<usize>,
    /// The coordinate of ids, and the largest size it has.
    pub(super) ids: IdScale,
    reach: f64,
}

/// The inner products of a normal vector with words and with places. A point's is the sum of its two. The weight of the
/// coordinate of ids comes to it.
#[derive(Clone)]
pub(super) struct CodeScores {
    words: Vec<f64>,
    places: Vec<f64>,
    /// The weight.
    pub id: f64,
}

/// The scaled codes of some points, side by side.
pub(super) struct SampledCodes {
    parts: Vec<SampledPart>,
}

/// Their words or their places.
enum SampledPart {
    /// Signs, a list per 64 columns; how many columns there are; and 1 for each point, but 0 for one with the code 0.
    Signs { lists: Vec<Vec<u64>>, columns: f64, present: Vec<f64> },
    /// Codes of other numbers.
    Dense(Matrix<f64>),
}

impl SampledPart {
    fn new(codes: &Codes, rows: impl Iterator<Item = Option<usize>>) -> Self {
        let rows: Vec<Option<usize>> = rows.collect();
        let Some(signs) = &codes.signs else {
            let zero = vec![0.0; codes.rows.cols];
            let data =
                rows.iter().flat_map(|row| row.map_or(&zero[..], |row| codes.scaled.row(row))).copied().collect();
            return Self::Dense(Matrix::new(rows.len(), codes.rows.cols, data));
        };
        let list = |column: &Vec<u64>| rows.iter().map(|row| row.map_or(0, |row| column[row])).collect();
        Self::Signs {
            lists: signs.words().iter().map(list).collect(),
            columns: codes.rows.cols as f64,
            present: rows.iter().map(|row| if row.is_some() { 1.0 } else { 0.0 }).collect(),
        }
    }

    /// Adds to each score the inner product of that point with point `i`, times a factor.
    fn add(&self, i: usize, factor: f64, scores: &mut [f64]) {
        match self {
            // Codes that differ in h of D entries have inner product D - 2h.
            Self::Signs { lists, columns, present } => {
                let factor = factor * present[i];
                for (k, list) in lists.iter().enumerate() {
                    let (own, columns) = (list[i], if k == 0 { *columns } else { 0.0 });
                    kernels::vectorized(
                        #[inline(always)]
                        || {
                            for ((score, &bits), &present) in scores.iter_mut().zip(list).zip(present) {
                                let differ = (own ^ bits).count_ones() as i32;
                                *score += factor * present * (columns - 2.0 * f64::from(differ));
                            }
                        },
                    );
                }
            }
            Self::Dense(codes) => {
                let own = codes.row(i);
                for (score, code) in scores.iter_mut().zip(codes.iter_rows()) {
                    *score += factor * own.iter().zip(code).map(|(a, b)| a * b).sum::<f64>();
                }
            }
        }
    }
}

impl SampledCodes {
    /// Adds to each score the inner product of that point with point `i`, times a factor.
    pub fn add(&self, i: usize, factor: f64, scores: &mut [f64]) {
        self.parts.iter().for_each(|part| part.add(i, factor, scores));
    }
}

/// The lowest and the highest coordinate of ids that some contexts of each word have. Words without such contexts are out of
/// reach: theirs are infinite, so that whatever the weight of ids is, they score minus infinity.
pub(super) struct WordSpans {
    low: Vec<f64>,
    high: Vec<f64>,
    /// 0, or minus infinity.
    any: Vec<f64>,
}

impl WordSpans {
    /// Where the contexts of words score highest for a weight of ids: at a coordinate, whose product with the weight is added.
    /// Without ids what is added stands there itself, and the factor is 1.
    fn highest(&self, id: f64) -> (&[f64], f64) {
        match id {
            0.0 => (&self.any, 1.0),
            id if id > 0.0 => (&self.high, id),
            id => (&self.low, id),
        }
    }
}

/// The highest that the contexts of each block of words score, from the scores of words at the coordinate 0.
#[expect(clippy::inline_always, reason = "only what is inlined is compiled for wider vector units")]
#[inline(always)]
fn largest_of_blocks(words: &[f64], (ends, factor): (&[f64], f64)) -> Vec<f64> {
    let mut all = vec![0.0; words.len().div_ceil(BLOCK)];
    for ((all, words), ends) in all.iter_mut().zip(words.chunks(BLOCK)).zip(ends.chunks(BLOCK)) {
        let mut bounds = [f64::NEG_INFINITY; BLOCK];
        for ((bound, word), end) in bounds.iter_mut().zip(words).zip(ends) {
            *bound = word + factor * end;
        }
        *all = kernels::largest(&bounds);
    }
    all
}

/// Words whose scores are looked at together: most such blocks are out of reach as a whole.
const BLOCK: usize = 64;

/// Steps along the coordinate of ids are multiples of this, so that weights have few bits.
const GRID: f64 = 1.0 / 4096.0;

/// The nearest multiple of the grid for weights of ids.
pub(super) fn on_grid(x: f64) -> f64 {
    (x / GRID).round() * GRID
}

impl<'a> CodePoints<'a> {
    /// Points given by word and place, sorted. Without places, points are words, and all places must be 0. The word after the
    /// last one has the code 0.
    pub fn new(words: &'a Codes, places: Option<&'a Codes>, list: &'a [(u32, u32)]) -> Self {
        let starts = (0..=words.count() + 1).map(|w| list.partition_point(|&(word, _)| (word as usize) < w)).collect();
        Self { words, places, list, starts, ids: IdScale::NONE, reach: 0.0 }
    }

    /// The same points, whose contexts have ids whose coordinates are at most `reach` in size.
    #[must_use]
    pub fn with_ids(self, ids: IdScale, reach: f64) -> Self {
        Self { ids, reach, ..self }
    }

    /// The word of a point.
    pub fn word(&self, point: usize) -> usize {
        self.list[point].0 as usize
    }

    /// Whether all codes are signs.
    pub(super) fn is_exact(&self) -> bool {
        self.words.signs.is_some() && self.places.is_none_or(|places| places.signs.is_some())
    }

    /// Whether contexts have ids.
    pub(super) fn has_ids(&self) -> bool {
        self.reach > 0.0
    }

    /// The length of the longest scaled code.
    pub(super) fn longest(&self) -> f64 {
        self.words.longest + self.places.map_or(0.0, |places| places.longest) + self.reach
    }

    /// The scores of a normal to scaled codes, with a weight of ids.
    pub(super) fn scores(&self, normal: &[f64], id: f64) -> CodeScores {
        let (word, place) = normal.split_at(self.words.rows.cols);
        // The word with the code 0 stays at 0.
        let mut words = vec![0.0; self.words.count() + 1];
        self.words.products(word, &mut words[..self.words.count()]);
        let mut places = vec![0.0; self.places.map_or(1, Codes::count)];
        if let Some(codes) = self.places {
            codes.products(place, &mut places);
        }
        CodeScores { words, places, id }
    }

    /// The scores of a normal of zeros.
    pub(super) fn zero_scores(&self) -> CodeScores {
        let places = vec![0.0; self.places.map_or(1, Codes::count)];
        CodeScores { words: vec![0.0; self.words.count() + 1], places, id: 0.0 }
    }

    /// Some points, prepared for steps.
    pub(super) fn sampled(&self, points: impl Iterator<Item = usize>) -> SampledCodes {
        let points: Vec<usize> = points.collect();
        let zero = self.words.count();
        let word = |&p: &usize| (self.word(p) < zero).then(|| self.word(p));
        let mut parts = vec![SampledPart::new(self.words, points.iter().map(word))];
        parts.extend(
            self.places.map(|codes| SampledPart::new(codes, points.iter().map(|&p| Some(self.list[p].1 as usize)))),
        );
        SampledCodes { parts }
    }

    /// The columns of codes.
    pub(super) fn columns(&self) -> usize {
        self.words.rows.cols + self.places.map_or(0, |places| places.rows.cols)
    }

    /// The two parts of the scaled code of a point: nothing for the word with the code 0.
    fn code(&self, point: usize) -> (&[f64], &[f64]) {
        let (word, place) = self.list[point];
        let word = if (word as usize) < self.words.count() { self.words.scaled.row(word as usize) } else { &[] };
        (word, self.places.map_or(&[][..], |places| places.scaled.row(place as usize)))
    }

    /// The square of the length of the scaled code of a point.
    pub(super) fn square(&self, point: usize) -> f64 {
        let (word, place) = self.code(point);
        word.iter().chain(place).map(|x| x * x).sum()
    }

    /// A normal to scaled codes as one to the codes themselves.
    pub(super) fn normal(&self, scaled: &[f64]) -> Vec<f64> {
        let (word, place) = scaled.split_at(self.words.rows.cols);
        let place_scale = self.places.map_or(1.0, |places| places.scale);
        word.iter().map(|x| x * self.words.scale).chain(place.iter().map(|x| x * place_scale)).collect()
    }

    /// Adds a multiple of a point to a normal to scaled codes.
    pub(super) fn add(&self, point: usize, factor: f64, normal: &mut [f64]) {
        let (word_code, place_code) = self.code(point);
        let (word, place) = normal.split_at_mut(self.words.rows.cols);
        word.iter_mut().zip(word_code).for_each(|(n, x)| *n += factor * x);
        place.iter_mut().zip(place_code).for_each(|(n, x)| *n += factor * x);
    }

    /// The inner product of a normal to scaled codes with a point, but for its id.
    pub(super) fn product(&self, point: usize, normal: &[f64]) -> f64 {
        let (word_code, place_code) = self.code(point);
        let (word, place) = normal.split_at(self.words.rows.cols);
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
        dot(word, word_code) + dot(place, place_code)
    }

    /// The score of a point at the coordinate 0.
    pub(super) fn score(&self, point: usize, scores: &CodeScores) -> f64 {
        let (word, place) = self.list[point];
        scores.words[word as usize] + scores.places[place as usize]
    }

    /// Calls `see` with the points that may score above `floor` in some context, and their scores at the coordinate 0; `see`
    /// may raise the floor. Coordinates are those that each word's contexts may have.
    pub(super) fn visit_above(
        &self,
        scores: &CodeScores,
        spans: &WordSpans,
        mut floor: f64,
        mut see: impl FnMut(usize, f64, &mut f64),
    ) {
        let top = kernels::largest(&scores.places);
        let (ends, factor) = spans.highest(scores.id);
        let largest = kernels::vectorized(
            #[inline(always)]
            || largest_of_blocks(&scores.words, (ends, factor)),
        );
        for (block, largest) in largest.into_iter().enumerate() {
            if largest + top <= floor {
                continue;
            }
            let words = scores.words.iter().zip(ends).enumerate().skip(block * BLOCK).take(BLOCK);
            for (w, (word, end)) in words {
                if word + factor * end + top > floor {
                    for point in self.starts[w]..self.starts[w + 1] {
                        see(point, self.score(point, scores), &mut floor);
                    }
                }
            }
        }
    }

    /// For each word the coordinates that some contexts of its points have; `contexts` gives those of each point, if any.
    pub(super) fn spans(&self, contexts: &[Option<(f64, f64)>]) -> WordSpans {
        let words = self.words.count() + 1;
        let out_of_reach = (vec![f64::INFINITY; words], vec![f64::NEG_INFINITY; words]);
        let mut spans = WordSpans { low: out_of_reach.0, any: out_of_reach.1.clone(), high: out_of_reach.1 };
        for w in 0..words {
            let some = contexts[self.starts[w]..self.starts[w + 1]].iter().flatten().copied();
            if let Some((low, high)) = some.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))) {
                (spans.low[w], spans.high[w], spans.any[w]) = (low, high, 0.0);
            }
        }
        spans
    }
}
