//! The feed-forward block of a compiled model, evaluated through its gates: for each word only the units that can fire for it.
//!
//! In a model of words with one layer, a unit computes `w1 . x + w1 . (W_O mixture) + b1`, x being the word's code plus the
//! place's. The mixture of values is bounded by the largest value of any token, so a unit whose sum stays below 0 for
//! every place and every mixture never fires for the word. In a compiled model nearly all are like that for each word.
//!
//! Without places, what a unit reads of a word's own coordinates is the same whatever the context. These are summed once for each
//! word, those that attention writes to behind them: one of the orders of summation.

use crate::arithmetic::kernels::Parallelism;
use crate::arithmetic::parallel;

use crate::arithmetic::kernels::{self, Real};
use crate::arithmetic::matrix::Matrix;
use crate::model::Model;
use crate::paper::feed_forward::FeedForward;

/// Words whose products with all units are formed at a time.
const BLOCK: usize = 64;

/// With more open units per word than one in so many, plain matrix products are faster.
const WORTHWHILE: usize = 16;

/// A mean of values is off by less than this share of the largest one, in sums of at most [`Sparse::most_tokens`] tokens.
const MEAN_ERROR: f64 = 1.0 / 64.0;

/// Attention that writes to more coordinates than this is read with all others.
const FEW: usize = 4;

/// Which units can fire for which word, and what they add where.
#[derive(Debug, Clone)]
pub struct Sparse<R> {
    /// The most that a unit reads of anything but a word's code.
    largest_input: Vec<f64>,
    /// The coordinates that attention writes to, where these are few and all others are those of the word alone.
    written: Option<Vec<usize>>,
    /// For each word that was looked at, the units that can fire for it.
    open: Vec<Option<OpenUnits<R>>>,
    /// For each unit, the coordinates it adds to, with its weights.
    outputs: Vec<Vec<(u32, R)>>,
}

/// The units that can fire for a word.
#[derive(Debug, Clone)]
struct OpenUnits<R> {
    units: Vec<u32>,
    /// For each unit, its weights of the coordinates that attention writes to, and its sum over all others: the same for every
    /// token of the word. Empty where that is not known.
    weights: Vec<R>,
    sums: Vec<R>,
}

impl<R: Real> OpenUnits<R> {
    fn new(units: Vec<u32>, block: &FeedForward<R>, code: &[R], written: Option<&[usize]>) -> Self {
        let Some(written) = written else { return Self { units, weights: Vec::new(), sums: Vec::new() } };
        let mut others = code.to_vec();
        written.iter().for_each(|&c| others[c] = R::ZERO);
        let rows = || units.iter().map(|&j| block.w1.row(j as usize));
        let weights = rows().flat_map(|row| written.iter().map(|&c| row[c])).collect();
        let sums = rows().map(|row| dot(row, &others)).collect();
        Self { units, weights, sums }
    }
}

fn dot<R: Real>(a: &[R], b: &[R]) -> R {
    kernels::vectorized(
        #[inline(always)]
        || kernels::dot(a, b),
    )
}

impl<R: Real> Sparse<R> {
    /// Before any word was looked at; nothing for a model of another kind.
    pub fn new(model: &Model<R>) -> Option<Self> {
        let words = model.words.as_ref()?;
        let [layer] = &model.transformer.layers[..] else { return None };
        let block = layer.feed_forward.as_ref().filter(|_| model.transformer.pre_feed_forward.is_none())?;
        let q = block.b1.len();
        let output = |j: usize| {
            let weight = |c: usize| (c as u32, block.w2.data[c * q + j]);
            (0..block.w2.rows).map(weight).filter(|(_, w)| *w != R::ZERO).collect()
        };
        Some(Self {
            largest_input: largest_input(model, block),
            written: written(model).filter(|written| written.len() <= FEW),
            open: vec![None; words.embedding.rows],
            outputs: parallel::map(q, output),
        })
    }

    /// The open units of the words marked in `used`. `None` where the model is not of the kind, or has so many open units that
    /// it would not pay.
    pub fn of_words(model: &Model<R>, used: &[bool]) -> Option<Self> {
        let mut sparse = Self::new(model)?;
        let wanted: Vec<usize> = (0..used.len()).filter(|&w| used[w]).collect();
        let total = sparse.look_at(model, &wanted);
        (total * WORTHWHILE <= wanted.len() * sparse.largest_input.len()).then_some(sparse)
    }

    /// How long sequences may be.
    pub fn most_tokens() -> usize {
        (MEAN_ERROR / 4.0 / R::UNIT_ROUNDOFF.to_f64()) as usize
    }

    /// Whether a word was looked at.
    pub fn knows(&self, word: u32) -> bool {
        self.open[word as usize].is_some()
    }

    /// Finds the units that can fire for some words, and how many they are in all.
    pub fn look_at(&mut self, model: &Model<R>, words: &[usize]) -> usize {
        let (Some(of), Some(block)) = (&model.words, &model.transformer.layers[0].feed_forward) else { return 0 };
        let (q, largest_input) = (block.b1.len(), &self.largest_input);
        let look = |_: usize, chunk: &[usize]| -> Vec<OpenUnits<R>> {
            let rows: Vec<R> = chunk.iter().flat_map(|&w| of.embedding.row(w)).copied().collect();
            let mut sums = vec![R::ZERO; chunk.len() * q];
            kernels::product(&rows, &block.w1.data, block.w1.cols, &mut sums, false, Parallelism::None);
            // A sum that is not a number may be anything.
            let off = |sum: R, j: usize| sum.to_f64() + largest_input[j] <= 0.0;
            let open = |(&w, row): (&usize, &[R])| {
                let units = (0..q).filter(|&j| !off(row[j], j)).map(|j| j as u32).collect();
                OpenUnits::new(units, block, of.embedding.row(w), self.written.as_deref())
            };
            chunk.iter().zip(sums.chunks_exact(q)).map(open).collect()
        };
        let lists: Vec<Vec<OpenUnits<R>>> = parallel::map_chunks(words, BLOCK, look);
        let mut total = 0;
        for (&w, list) in words.iter().zip(lists.into_iter().flatten()) {
            total += list.units.len();
            self.open[w] = Some(list);
        }
        total
    }

    /// Eq. 3 on packed tokens of words that were looked at, in place.
    pub fn feed_forward(&self, block: &FeedForward<R>, words: &[u32], h: &mut [R]) {
        let d = block.b2.len();
        let mut before = vec![R::ZERO; d];
        for (&word, row) in words.iter().zip(h.chunks_exact_mut(d)) {
            let open = self.open[word as usize].as_ref().expect("the word was looked at");
            before.copy_from_slice(row);
            row.iter_mut().zip(&block.b2).for_each(|(h, &b)| *h += b);
            for (i, &j) in open.units.iter().enumerate() {
                let sum = match &self.written {
                    Some(written) => {
                        let weights = &open.weights[i * written.len()..][..written.len()];
                        weights.iter().zip(written).fold(open.sums[i], |sum, (&w, &c)| sum + w * before[c])
                    }
                    None => dot(block.w1.row(j as usize), &before),
                };
                let x = sum + block.b1[j as usize];
                if x > R::ZERO {
                    self.outputs[j as usize].iter().for_each(|&(c, w)| row[c as usize] += w * x);
                }
            }
        }
    }
}

/// The coordinates that attention writes to; nothing where places are written to others.
fn written<R: Real>(model: &Model<R>) -> Option<Vec<usize>> {
    let heads = || model.transformer.layers[0].attention.iter().flat_map(|attention| &attention.heads);
    let writes = |c: &usize| heads().any(|head| head.w_o.row(*c).iter().any(|&w| w != R::ZERO));
    model.positions.is_none().then(|| (0..model.transformer.d).filter(writes).collect())
}

/// The most that places, attention and bias can add to what each unit reads of a word's code, rounding included.
fn largest_input<R: Real>(model: &Model<R>, block: &FeedForward<R>) -> Vec<f64> {
    let d = model.transformer.d;
    let wide = |x: &[R]| -> Vec<f64> { x.iter().map(|x| x.to_f64()).collect() };
    let products = |rows: &Matrix<R>, with: &Matrix<R>| {
        let mut out = vec![0.0; rows.rows * with.rows];
        kernels::product(&wide(&rows.data), &wide(&with.data), d, &mut out, false, Parallelism::None);
        Matrix::new(rows.rows, with.rows, out)
    };
    let largest = |m: &Matrix<f64>, c: usize| m.iter_rows().map(|row| row[c].abs()).fold(0.0, f64::max);
    let mut largest_input: Vec<f64> = wide(&block.b1);
    if let Some(positions) = &model.positions {
        let places = products(positions, &block.w1);
        for (j, largest_input) in largest_input.iter_mut().enumerate() {
            *largest_input += places.iter_rows().map(|row| row[j]).fold(f64::NEG_INFINITY, f64::max);
        }
    }
    let heads = model.transformer.layers[0].attention.iter().flat_map(|attention| &attention.heads);
    for head in heads {
        let words = model.words.as_ref().map(|w| products(&w.embedding, &head.w_v));
        let places = model.positions.as_ref().map(|p| products(p, &head.w_v));
        for c in 0..head.w_v.rows {
            let value =
                [&words, &places].into_iter().flatten().map(|m| largest(m, c)).sum::<f64>() * (1.0 + MEAN_ERROR);
            let column: Vec<f64> = (0..d).map(|i| head.w_o.row(i)[c].to_f64()).collect();
            for (j, largest_input) in largest_input.iter_mut().enumerate() {
                let weight: f64 = block.w1.row(j).iter().zip(&column).map(|(w, o)| w.to_f64() * o).sum();
                *largest_input += weight.abs() * value;
            }
        }
    }
    // Sums of so many terms, in any order, are off by less than this share of their terms.
    let share = (d as f64 + 8.0) * 4.0 * R::UNIT_ROUNDOFF.to_f64();
    let codes = model.words.iter().flat_map(|words| &words.embedding.data);
    let entry = codes.fold(0.0, |m: f64, x| m.max(x.to_f64().abs()));
    for (j, largest_input) in largest_input.iter_mut().enumerate() {
        let size: f64 = block.w1.row(j).iter().map(|w| w.to_f64().abs()).sum::<f64>() * entry;
        *largest_input += share * (size + largest_input.abs());
    }
    largest_input
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Split;
    use crate::model::AnyModel;
    use crate::{Dataset, Memorizer, Precision};

    /// Through gates, with the sums of a word's own coordinates formed once, a token gets what plain sums give it.
    #[test]
    fn as_plain_sums() {
        let text = "a rose is a rose is a rose and no rose is like a rose that is no rose and that is all";
        let data = Dataset::from_text(text, Split::Word).unwrap();
        let compiled = Memorizer::new().text(Split::Word).precision(Precision::F64).compile(&data).unwrap();
        let AnyModel::F64(model) = compiled.model() else { panic!("a model in f64") };
        let (words, block) =
            (model.words.as_ref().unwrap(), model.transformer.layers[0].feed_forward.as_ref().unwrap());
        let mut sparse = Sparse::new(model).unwrap();
        let written = sparse.written.clone().unwrap();
        assert_eq!(written.len(), 1);
        let all: Vec<usize> = (0..words.embedding.rows).collect();
        assert!(sparse.look_at(model, &all) > 0);
        let mut fired = 0;
        for word in all {
            for id in [-3.0, -0.5, 0.0, 0.25, 2.0] {
                let mut h = words.embedding.row(word).to_vec();
                h[written[0]] += id;
                let mut plain: Vec<f64> = h.iter().zip(&block.b2).map(|(h, b)| h + b).collect();
                for j in 0..block.b1.len() {
                    let x = block.w1.row(j).iter().zip(&h).map(|(w, h)| w * h).sum::<f64>() + block.b1[j];
                    plain.iter_mut().enumerate().for_each(|(c, out)| *out += block.w2.row(c)[j] * x.max(0.0));
                    fired += usize::from(x > 0.0);
                }
                sparse.feed_forward(block, &[word as u32], &mut h);
                for (a, b) in h.iter().zip(&plain) {
                    assert!((a - b).abs() <= 1e-9 * (1.0 + b.abs()), "{word} {id}: {a} {b}");
                }
            }
        }
        assert!(fired > 0);
    }
}
