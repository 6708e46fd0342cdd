//! The heights of label curves at their knots: those with the gentlest slopes that leave every id a margin.
//!
//! The unknowns are the heights of all labels at the nodes: the knots but the first, where heights are given, and the last id.
//! At an id between two nodes a curve has a weighted mean of its heights there, so that "this label is above that one by w here" is
//! a linear inequality in four unknowns. Among all solutions the one with the smallest sum of squared slopes is wanted: a
//! quadratic program, solved by a primal-dual interior-point method. Neighboring nodes alone have terms in common, so that the
//! matrices are banded, and a step takes time in proportion to the knots. Whether what it finds does is decided elsewhere, by the
//! sums that a model computes.

/// `above` is to be higher than `below` by `margin` at a place between the node `node - 1` and the node `node`;
/// node 0 is the first knot.
#[derive(Debug, Clone, Copy)]
pub struct Demand {
    /// The node to the right.
    pub node: usize,
    /// Where between the nodes: the weights of the left one and of the right one.
    pub weights: [f64; 2],
    /// The label that is to be above.
    pub above: usize,
    /// The label that is to be below.
    pub below: usize,
    /// By how much.
    pub margin: f64,
}

/// Steps of the method at most: it takes 15 to 30 where there is a solution.
const MOST_STEPS: usize = 60;

/// The heights of all labels at the nodes but the first, node by node. `first` are the heights at the first, `widths` the distances
/// between nodes. Each demand is met to a half at least; `None` where that was not reached.
pub fn heights(first: &[f64], widths: &[f64], demands: &[Demand]) -> Option<Vec<f64>> {
    let program = HeightProgram::new(first, widths, demands);
    let mut at = Iterate { h: vec![0.0; program.n], slack: vec![1.0; demands.len()], dual: vec![1.0; demands.len()] };
    let scale = demands.iter().map(|d| d.margin).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    at.slack.iter_mut().for_each(|s| *s = scale);
    let weight = program.form.mean_diagonal();
    at.dual.iter_mut().for_each(|z| *z = scale * weight);
    for _ in 0..MOST_STEPS {
        if !program.step(&mut at)? {
            break;
        }
    }
    let met = |(demand, value): (&Demand, f64)| value >= 0.5 * demand.margin;
    let found = demands.iter().zip(program.values(&at.h)).all(met);
    found.then_some(at.h)
}

struct Iterate {
    h: Vec<f64>,
    slack: Vec<f64>,
    dual: Vec<f64>,
}

/// A sum of up to four unknowns and a constant.
struct DemandRow {
    terms: [(usize, f64); 4],
    constant: f64,
    margin: f64,
}

struct HeightProgram {
    n: usize,
    rows: Vec<DemandRow>,
    /// The quadratic form, as a band, and its linear part.
    form: Band,
    linear: Vec<f64>,
}

impl HeightProgram {
    fn new(first: &[f64], widths: &[f64], demands: &[Demand]) -> Self {
        let labels = first.len();
        let n = labels * widths.len();
        let (mut form, mut linear) = (Band::new(n, 2 * labels), vec![0.0; n]);
        for (k, width) in widths.iter().enumerate() {
            let weight = 1.0 / width;
            for (l, height) in first.iter().enumerate() {
                let i = k * labels + l;
                *form.at(i, i) += weight;
                if k == 0 {
                    linear[i] -= weight * height;
                } else {
                    *form.at(i - labels, i - labels) += weight;
                    *form.at(i, i - labels) -= weight;
                }
            }
        }
        let row = |d: &Demand| {
            let mut row = DemandRow { terms: [(0, 0.0); 4], constant: 0.0, margin: d.margin };
            for (slot, (label, sign)) in [(d.above, 1.0), (d.below, -1.0)].into_iter().enumerate() {
                row.terms[2 * slot] = ((d.node - 1) * labels + label, sign * d.weights[1]);
                if d.node == 1 {
                    row.constant += sign * d.weights[0] * first[label];
                } else {
                    row.terms[2 * slot + 1] = ((d.node - 2) * labels + label, sign * d.weights[0]);
                }
            }
            row
        };
        Self { n, rows: demands.iter().map(row).collect(), form, linear }
    }

    /// By how much each demand's label is above the other.
    fn values<'a>(&'a self, h: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        self.rows.iter().map(|row| row.constant + row.terms.iter().map(|&(i, c)| c * h[i]).sum::<f64>())
    }

    /// One step, with a prediction and a correction; whether another is worth while. `None` where numbers leave their range.
    fn step(&self, at: &mut Iterate) -> Option<bool> {
        let m = self.rows.len() as f64;
        let mean = |slack: &[f64], dual: &[f64]| slack.iter().zip(dual).map(|(s, z)| s * z).sum::<f64>() / m;
        let mu = mean(&at.slack, &at.dual);
        let primal: Vec<f64> =
            self.values(&at.h).zip(&self.rows).zip(&at.slack).map(|((v, row), s)| v - row.margin - s).collect();
        let mut dual = self.form.times(&at.h);
        dual.iter_mut().zip(&self.linear).for_each(|(d, l)| *d += l);
        for (row, z) in self.rows.iter().zip(&at.dual) {
            row.terms.iter().for_each(|&(i, c)| dual[i] -= c * z);
        }
        let mut matrix = self.form.clone();
        for ((row, s), z) in self.rows.iter().zip(&at.slack).zip(&at.dual) {
            let weight = z / s;
            for &(i, c) in &row.terms {
                for &(j, d) in row.terms.iter().filter(|&&(j, _)| j <= i) {
                    *matrix.at(i, j) += weight * c * d;
                }
            }
        }
        matrix.factor()?;
        let solve = |complement: &[f64]| {
            let mut right: Vec<f64> = dual.iter().map(|d| -d).collect();
            for (i, row) in self.rows.iter().enumerate() {
                let weight = (complement[i] + at.dual[i] * primal[i]) / at.slack[i];
                row.terms.iter().for_each(|&(j, c)| right[j] -= c * weight);
            }
            matrix.solve(&mut right);
            let along = self.rows.iter().map(|row| row.terms.iter().map(|&(i, c)| c * right[i]).sum::<f64>());
            let slack: Vec<f64> = along.zip(&primal).map(|(a, p)| a + p).collect();
            let z = (0..slack.len()).map(|i| (-complement[i] - at.dual[i] * slack[i]) / at.slack[i]).collect();
            Iterate { h: right, slack, dual: z }
        };
        let product: Vec<f64> = at.slack.iter().zip(&at.dual).map(|(s, z)| s * z).collect();
        let guess = solve(&product);
        let length = |x: &[f64], dx: &[f64]| {
            x.iter().zip(dx).map(|(x, d)| if *d < 0.0 { -x / d } else { 1.0 }).fold(1.0, f64::min)
        };
        let (p, d) = (length(&at.slack, &guess.slack), length(&at.dual, &guess.dual));
        let moved = |x: &[f64], dx: &[f64], by: f64| x.iter().zip(dx).map(|(x, d)| x + by * d).collect::<Vec<f64>>();
        let guessed = mean(&moved(&at.slack, &guess.slack, p), &moved(&at.dual, &guess.dual, d));
        let center = mu * (guessed / mu).powi(3);
        let corrected: Vec<f64> =
            (0..product.len()).map(|i| product[i] + guess.slack[i] * guess.dual[i] - center).collect();
        let next = solve(&corrected);
        if !next.h.iter().chain(&next.slack).chain(&next.dual).all(|x| x.is_finite()) {
            return None;
        }
        let (p, d) = (0.99 * length(&at.slack, &next.slack), 0.99 * length(&at.dual, &next.dual));
        at.h = moved(&at.h, &next.h, p);
        at.slack = moved(&at.slack, &next.slack, p);
        at.dual = moved(&at.dual, &next.dual, d);
        let met = self.values(&at.h).zip(&self.rows).all(|(v, row)| v >= 0.75 * row.margin);
        let cost: f64 = self.form.times(&at.h).iter().zip(&at.h).map(|(a, b)| a * b).sum();
        Some(!(met && mean(&at.slack, &at.dual) * m <= 0.05 * cost))
    }
}

/// A symmetric matrix whose entries are 0 further than `width - 1` from the diagonal: its lower half, row by row.
#[derive(Clone)]
struct Band {
    n: usize,
    width: usize,
    data: Vec<f64>,
}

impl Band {
    fn new(n: usize, width: usize) -> Self {
        Self { n, width, data: vec![0.0; n * width] }
    }

    /// The entry of a row and a column that is not to the right of the diagonal.
    fn at(&mut self, i: usize, j: usize) -> &mut f64 {
        &mut self.data[i * self.width + self.width - 1 + j - i]
    }

    fn mean_diagonal(&self) -> f64 {
        let logs: f64 = (0..self.n).map(|i| self.data[(i + 1) * self.width - 1].ln()).sum();
        (logs / self.n as f64).exp()
    }

    fn row(&self, i: usize) -> (usize, &[f64]) {
        let first = (i + 1).saturating_sub(self.width);
        (first, &self.data[i * self.width + self.width - 1 + first - i..(i + 1) * self.width])
    }

    fn times(&self, x: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.n];
        for i in 0..self.n {
            let (first, row) = self.row(i);
            for (j, &a) in (first..=i).zip(row) {
                out[i] += a * x[j];
                if j < i {
                    out[j] += a * x[i];
                }
            }
        }
        out
    }

    /// Replaces the matrix by its Cholesky factor.
    fn factor(&mut self) -> Option<()> {
        for i in 0..self.n {
            let first = self.row(i).0;
            for j in first..=i {
                let from = first.max(self.row(j).0);
                let (a, b) = (self.row(i), self.row(j));
                let dot: f64 = a.1[from - a.0..j - a.0].iter().zip(&b.1[from - b.0..]).map(|(x, y)| x * y).sum();
                let rest = *self.at(i, j) - dot;
                if i == j {
                    if !(rest > 0.0 && rest.is_finite()) {
                        return None;
                    }
                    *self.at(i, i) = rest.sqrt();
                } else {
                    *self.at(i, j) = rest / *self.at(j, j);
                }
            }
        }
        Some(())
    }

    /// Solves with the factor.
    fn solve(&self, x: &mut [f64]) {
        for i in 0..self.n {
            let (first, row) = self.row(i);
            let dot: f64 = row[..i - first].iter().zip(&x[first..i]).map(|(a, b)| a * b).sum();
            x[i] = (x[i] - dot) / row[i - first];
        }
        for i in (0..self.n).rev() {
            let (first, row) = self.row(i);
            x[i] /= row[i - first];
            for j in first..i {
                x[j] -= row[j - first] * x[i];
            }
        }
    }
}
