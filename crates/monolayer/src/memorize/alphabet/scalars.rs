//! The free numbers of a rank-1 layer over one-hot codes: one for each word and place as a key, and one as a query.

use rand::RngExt as _;
use rand::rngs::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::architecture::Reads;

/// All scalars are multiples of this: sums of two are exact even in single precision.
const GRID: f64 = 1.0 / 16_384.0;
/// And no larger than this.
const LARGEST: f64 = 64.0;

/// `p = word_keys[w] + place_keys[k]` and `y = word_queries[w] + place_queries[k]` of a word w at place k.
#[derive(Debug, Clone, PartialEq)]
pub struct Scalars {
    /// What a word adds to its key.
    pub word_keys: Vec<f64>,
    /// What a place adds to a key; zeros where keys do not read places.
    pub place_keys: Vec<f64>,
    /// What a word adds to its query.
    pub word_queries: Vec<f64>,
    /// What a place adds to a query; zeros where there are no positions.
    pub place_queries: Vec<f64>,
    /// The key of the start token.
    pub start: f64,
}

impl Scalars {
    /// The query of a word at a place.
    pub fn query(&self, word: usize, place: usize) -> f64 {
        self.word_queries[word] + self.place_queries[place]
    }

    /// Random ones, of one of several kinds: structured ones are often the best.
    pub fn random(shape: (usize, usize, Reads), rng: &mut ChaCha8Rng) -> Self {
        if shape.2 == Reads::Places && rng.random_range(0..2) == 0 {
            Self::recent(shape, rng)
        } else {
            Self::any(shape, rng)
        }
    }

    /// Keys that grow with the place, and words that matter less than places: ids are then in the order of a dictionary that is read
    /// from the last token, or from the first. From some place on the query may look the other way.
    fn recent((words, places, _): (usize, usize, Reads), rng: &mut ChaCha8Rng) -> Self {
        let ratio = rng.random_range(1.0..3.0);
        let share = rng.random_range(0.1..0.5);
        let mut order: Vec<usize> = (0..words).collect();
        for i in (1..words).rev() {
            order.swap(i, rng.random_range(0..=i));
        }
        let common = ratio * [-1.0, 1.0][rng.random_range(0..2)];
        let turn = rng.random_range(0..2 * places);
        let word_keys = order.iter().map(|&i| on_grid(share * i as f64 / words as f64)).collect();
        let place_keys = (0..places).map(|k| k as f64).collect();
        let place_queries = (0..places).map(|k| on_grid(if k >= turn { -2.0 * common } else { 0.0 })).collect();
        let start = on_grid([-1.0, 0.0, places as f64][rng.random_range(0..3)]);
        Self { word_keys, place_keys, word_queries: vec![on_grid(common); words], place_queries, start }
    }

    fn any((words, places, reads): (usize, usize, Reads), rng: &mut ChaCha8Rng) -> Self {
        let mut word_keys = match rng.random_range(0..4) {
            // One word against all others.
            0 => {
                let one = rng.random_range(0..words);
                (0..words).map(|w| if w == one { 1.0 } else { 0.0 }).collect()
            }
            1 => (0..words).map(|_| f64::from(rng.random_range(-2..=2))).collect(),
            _ => normals(words, rng),
        };
        let mut place_keys = match (reads, rng.random_range(0..3)) {
            (Reads::Places, 0) => normals(places, rng),
            // Recency: the later, the larger, or the other way round.
            (Reads::Places, _) => {
                let step = [0.25, 0.5, 1.0, -1.0, -0.5][rng.random_range(0..5)];
                (0..places).map(|k| step * k as f64).collect()
            }
            _ => vec![0.0; places],
        };
        if reads == Reads::Places {
            let weight = [0.1, 0.3, 1.0][rng.random_range(0..3)];
            word_keys.iter_mut().for_each(|x| *x *= weight);
        }
        let steepness = [0.0, 0.3, 1.0, 3.0, 6.0][rng.random_range(0..5)];
        let common = steepness * [-1.0, 1.0][rng.random_range(0..2)];
        let by_word = [0.0, 0.0, 0.3, 1.0][rng.random_range(0..4)];
        let by_place = if reads.positions() { [0.0, 0.0, 0.3, 1.0][rng.random_range(0..4)] } else { 0.0 };
        let flip = reads.positions() && rng.random_range(0..3) == 0;
        let turn = rng.random_range(0..places.max(1));
        let mut word_queries: Vec<f64> = normals(words, rng).iter().map(|x| x * by_word + common).collect();
        let mut place_queries: Vec<f64> = normals(places, rng)
            .iter()
            .enumerate()
            // From some place on the query looks the other way.
            .map(|(k, x)| x * by_place - if flip && k >= turn { 2.0 * common } else { 0.0 })
            .collect();
        for list in [&mut word_keys, &mut place_keys, &mut word_queries, &mut place_queries] {
            list.iter_mut().for_each(|x| *x = on_grid(*x));
        }
        let start = on_grid(normals(1, rng)[0] * [0.0, 1.0, 2.0][rng.random_range(0..3)]);
        Self { word_keys, place_keys, word_queries, place_queries, start }
    }

    /// The same with a few numbers changed.
    #[must_use]
    pub fn changed(&self, reads: Reads, rng: &mut ChaCha8Rng) -> Self {
        let mut new = self.clone();
        let size = 10.0_f64.powf(rng.random_range(-3.0..0.3));
        let mut step = || size * normals(1, rng)[0];
        let which = [step(), step()];
        let list = match (rng.random_range(0..8), reads) {
            (0, _) => {
                new.start = on_grid(new.start + which[0]);
                return new;
            }
            (1 | 2, Reads::Places) => &mut new.place_keys,
            (3, Reads::Places | Reads::OwnPlace) => &mut new.place_queries,
            (4 | 5, _) => &mut new.word_queries,
            _ => &mut new.word_keys,
        };
        match rng.random_range(0..4) {
            0 => {
                // All of them, by a common step or a common factor.
                let factor = 1.0 + which[1];
                let common = rng.random_range(0..2) == 0;
                list.iter_mut().for_each(|x| *x = on_grid(if common { *x + which[0] } else { *x * factor }));
            }
            1 => {
                let (i, j) = (rng.random_range(0..list.len()), rng.random_range(0..list.len()));
                list.swap(i, j);
            }
            _ => {
                let i = rng.random_range(0..list.len());
                list[i] = on_grid(list[i] + which[0]);
            }
        }
        new
    }
}

fn normals(count: usize, rng: &mut ChaCha8Rng) -> Vec<f64> {
    (0..count).map(|_| Distribution::<f64>::sample(&StandardNormal, rng)).collect()
}

fn on_grid(x: f64) -> f64 {
    ((x / GRID).round() * GRID).clamp(-LARGEST, LARGEST)
}
