//! Fewer parameters than ids (Remark 2 after Vardi et al.): sorted ids in blocks of k, each block's ids and labels as the bits
//! of one number, and layers that read the bits off.
//!
//! Ids are scaled to `x` with gaps of 2 and more, so that `u_i = floor(x_i)` differ. After attention, one feed-forward block
//! with a ramp per block boundary sets two registers: `z = x - u_1`, for the first id of the block, and the integer V
//! whose bits are, from the top: the label of the first id, the distance `u_2 - u_1`, the label of the second, and so on. Then
//! for each of the k ids
//!
//! - one layer sets the register `match` to 1 if z is in `[0, 1]`, and to 0 if some other id is in its place;
//! - a layer per label bit takes the top bit off V and adds it to the register `label`, if `match` is 1;
//! - a layer per bit of the distance takes the top bit off V and subtracts it from z, which becomes `x - u_(i+1)`.
//!
//! The top bit of an integer `V < 2^m` is `relu(V - 2^(m-1) + 1) - relu(V - 2^(m-1))`. All of it is exact in rational
//! arithmetic, and x may be irrational: on the plateaus around ids it cancels. A block shorter than k ends in zeros: what they
//! match again adds a label of 0.

use dashu_int::{IBig, UBig};
use dashu_ratio::RBig;

use super::vectors::outputs::Outputs;
use super::vectors::{Apart, Prepared, assemble, compiled_exactly, exact_heads, prepare};
use super::{Compiled, DeepDetails, Details, Memorizer, Method};
use crate::arithmetic::matrix::Matrix;
use crate::arithmetic::rational;
use crate::arithmetic::sorting;
use crate::context_map::View;
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::model::LabelHead;
use crate::model::certificate::CertifiedData;
use crate::model::exact::map_attention;
use crate::paper::feed_forward::FeedForward;
use crate::paper::transformer::Layer;

/// The registers, as coordinates of tokens.
#[derive(Debug, Clone, Copy)]
struct Registers {
    z: usize,
    v: usize,
    matched: usize,
    label: usize,
}

/// How ids are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packing {
    /// The most ids in a block.
    pub block: usize,
    /// Bits of the distance of two ids in a block.
    pub distance_bits: usize,
    /// Bits of a label.
    pub label_bits: usize,
    /// How many blocks there are.
    pub blocks: usize,
}

/// Memorizes a dataset of M ids with about `sqrt(M)` numbers, times the bits of a label and of a distance, in layers of at most
/// five units after the first.
pub(super) fn memorize_deep(data: &Dataset, memorizer: &Memorizer) -> Result<Compiled> {
    let Prepared { labels, outputs, vectors, map } = prepare(data, memorizer, Apart::All)?;
    let d = vectors.d();
    if d < 4 {
        return Err(Error::mismatch(
            format!("vectors of dimension {d} hold fewer than the four registers of the deep method"),
            "use `method` plateau, or vectors of dimension 4 or more",
        ));
    }
    let agreement = View::new(data, &vectors, memorizer.mask.clone()).contexts.agree(&labels);
    let count = outputs.points(d).rows;
    let others: Vec<usize> = (0..d).filter(|&i| i != map.coordinate).collect();
    let registers = Registers { z: map.coordinate, v: others[0], matched: others[1], label: others[2] };
    let ids = PackedIds::new(&map.rows, map.coordinate, &map.filled(&agreement));
    let packing = ids.packing(count.next_power_of_two().trailing_zeros() as usize);

    let program = RegisterProgram { d, registers, packing };
    let mut blocks = vec![ids.first_block(&program, &map.rows)];
    blocks.extend(program.layers());
    let points = outputs.points(d);
    let heads = match &outputs {
        Outputs::Classes(names) => (Some(program.head(names.names())), None),
        Outputs::Vectors(_) => {
            blocks.push(program.write_outputs(&points, &map.rows, ids.range()));
            exact_heads(&outputs, &points)
        }
    };
    let nonzero = blocks.iter().map(nonzero).sum();
    let attention = map_attention(&map.attention(memorizer.mask.clone()), |&x| rational(x));
    let mut layers: Vec<Layer<RBig>> =
        blocks.into_iter().map(|block| Layer { attention: None, feed_forward: Some(block) }).collect();
    layers[0].attention = Some(attention);
    let certified = CertifiedData::new(data, agreement.impossible.len());
    let model = assemble(data, &vectors, layers, heads, memorizer.source(data, certified.hash(), Method::Deep));
    let written = if model.head.is_some() { 1 } else { d };
    let one_layer = (agreement.label.len() - 1) * (2 + written) + written;
    let details = Details::Deep(DeepDetails { packing, nonzero, one_layer });
    compiled_exactly(data, certified, model, agreement, map.gap, (Method::Deep, details))
}

/// Numbers other than 0 in a block.
pub fn nonzero(block: &FeedForward<RBig>) -> usize {
    let numbers = block.w1.data.iter().chain(&block.b1).chain(&block.w2.data).chain(&block.b2);
    numbers.filter(|x| !x.is_zero()).count()
}

/// The sorted ids with their labels, and `floor(scale id)` for a power of two that makes all gaps 2 at least.
struct PackedIds {
    id: Vec<f64>,
    label: Vec<u32>,
    floor: Vec<IBig>,
    scale: RBig,
}

impl PackedIds {
    fn new(rows: &Matrix<f64>, coordinate: usize, label: &[u32]) -> Self {
        let mut sorted: Vec<(f64, u32)> =
            rows.iter_rows().map(|row| row[coordinate]).zip(label.iter().copied()).collect();
        sorting::sort_by(&mut sorted, |a, b| a.0.total_cmp(&b.0));
        let smallest = sorted.windows(2).map(|pair| pair[1].0 - pair[0].0).fold(f64::INFINITY, f64::min);
        // The smallest gap becomes a number from 2 to 4. What ids are off by is far below the quarters left free.
        let scale = rational(if smallest.is_finite() { (4.0 / smallest).log2().floor().exp2() } else { 1.0 });
        let floor = sorted.iter().map(|&(id, _)| (rational(id) * &scale).floor()).collect();
        Self { id: sorted.iter().map(|x| x.0).collect(), label: sorted.iter().map(|x| x.1).collect(), floor, scale }
    }

    /// The largest absolute value of an id, scaled, and 1 more.
    fn range(&self) -> RBig {
        let ends = [&self.floor[0], &self.floor[self.floor.len() - 1]];
        let largest = ends.iter().map(|x| RBig::from((*x).clone())).map(|x| if x < RBig::ZERO { -x } else { x }).max();
        largest.expect("two ends") + RBig::from(2)
    }

    fn distance(&self, i: usize) -> IBig {
        &self.floor[i + 1] - &self.floor[i]
    }

    /// Where blocks of at most k ids start, if distances within blocks have at most so many bits.
    fn starts(&self, distances: &[usize], k: usize, bits: usize) -> Vec<usize> {
        let mut starts = vec![0];
        for i in 1..self.id.len() {
            if i - starts[starts.len() - 1] == k || distances[i - 1] > bits {
                starts.push(i);
            }
        }
        starts
    }

    /// The packing with the fewest numbers other than 0.
    fn packing(&self, label_bits: usize) -> Packing {
        let distances = self.distance_bits();
        let longest = distances.iter().copied().max().unwrap_or(0);
        let mut best: Option<(usize, Packing)> = None;
        for distance_bits in 0..=longest {
            // Beyond some size a larger block only costs.
            for block in 1..=self.id.len() {
                let layers = block * (14 + 14 * label_bits) + (block - 1) * 8 * distance_bits;
                if best.is_some_and(|(cost, _)| layers >= cost) {
                    break;
                }
                let blocks = self.starts(&distances, block, distance_bits).len();
                let cost = layers + 8 * (blocks - 1);
                if best.is_none_or(|(least, _)| cost < least) {
                    best = Some((cost, Packing { block, distance_bits, label_bits, blocks }));
                }
            }
        }
        best.expect("at least one id").1
    }

    /// The bits of each distance of neighbors.
    fn distance_bits(&self) -> Vec<usize> {
        let bits = |i: usize| dashu_base::BitTest::bit_len(&self.distance(i));
        (0..self.id.len() - 1).map(bits).collect()
    }

    /// The first feed-forward block: `z = x - u_1` and V for the block of ids that x is in, the other registers 0.
    fn first_block(&self, program: &RegisterProgram, rows: &Matrix<f64>) -> FeedForward<RBig> {
        let Registers { z, v, matched, label } = program.registers;
        let starts = self.starts(&self.distance_bits(), program.packing.block, program.packing.distance_bits);
        let number = |b: usize| {
            let end = starts.get(b + 1).copied().unwrap_or(self.id.len());
            RBig::from(self.pack(starts[b]..end, &program.packing))
        };
        let first = |b: usize| RBig::from(self.floor[starts[b]].clone());
        let bound = RegisterProgram::bound(rows);
        let mut units = Units::new(program.d);
        for register in [v, matched, label] {
            units.clear(register, &bound);
        }
        // z = id + (scale - 1)(id + B) - (scale - 1) B - u_1.
        let stretch = &self.scale - RBig::ONE;
        units.bias(z, -(&stretch * &bound) - first(0));
        units.add(&[(z, RBig::ONE)], bound, &[(z, stretch)]);
        units.bias(v, number(0));
        for (b, &start) in starts.iter().enumerate().skip(1) {
            let (left, right) = (rational(self.id[start - 1]), rational(self.id[start]));
            let quarter = (&right - &left) / RBig::from(4);
            let slope = RBig::ONE / (&quarter * RBig::from(2));
            let changes = [(z, (first(b - 1) - first(b)) * &slope), (v, (number(b) - number(b - 1)) * &slope)];
            let back = changes.clone().map(|(register, x)| (register, -x));
            units.add(&[(z, RBig::ONE)], -(left + &quarter), &changes);
            units.add(&[(z, RBig::ONE)], -(right - quarter), &back);
        }
        units.block()
    }

    /// The labels and distances of some ids as one integer, from the top.
    fn pack(&self, ids: std::ops::Range<usize>, packing: &Packing) -> UBig {
        let mut number = UBig::ZERO;
        for slot in 0..packing.block {
            let i = ids.start + slot;
            number <<= packing.label_bits;
            if ids.contains(&i) {
                number += UBig::from(self.label[i]);
            }
            if slot + 1 < packing.block {
                number <<= packing.distance_bits;
                if ids.contains(&(i + 1)) {
                    number += UBig::try_from(self.distance(i)).expect("ids are sorted");
                }
            }
        }
        number
    }
}

/// The layers after the first.
struct RegisterProgram {
    d: usize,
    registers: Registers,
    packing: Packing,
}

impl RegisterProgram {
    /// The layers that read V, the same for all blocks of ids.
    fn layers(&self) -> Vec<FeedForward<RBig>> {
        let Packing { block, distance_bits, label_bits, .. } = self.packing;
        let mut left = block * label_bits + (block - 1) * distance_bits;
        let mut layers = Vec::new();
        for slot in 0..block {
            layers.push(self.test(slot > 0));
            for bit in (0..label_bits).rev() {
                layers.push(self.label_bit(left, bit));
                left -= 1;
            }
            if slot + 1 < block {
                for bit in (0..distance_bits).rev() {
                    layers.push(self.distance_bit(left, bit));
                    left -= 1;
                }
            }
        }
        layers
    }

    /// `match` is 1 for z in [-1/4, 5/4] and 0 outside [-3/4, 7/4].
    fn test(&self, again: bool) -> FeedForward<RBig> {
        let Registers { z, matched, .. } = self.registers;
        let mut units = Units::new(self.d);
        let two = RBig::from(2);
        for (shift, sign) in [(3, 1), (1, -1), (-5, -1), (-7, 1)] {
            let shift = RBig::from_parts(shift.into(), 2_u8.into());
            units.add(&[(z, two.clone())], shift, &[(matched, RBig::from(sign))]);
        }
        if again {
            units.add(&[(matched, RBig::ONE)], RBig::ZERO, &[(matched, -RBig::ONE)]);
        }
        units.block()
    }

    /// Takes the top one of `left` bits off V; where `match` is 1, adds it to `label` at its place.
    fn label_bit(&self, left: usize, bit: usize) -> FeedForward<RBig> {
        let Registers { v, matched, label, .. } = self.registers;
        let (half, whole) = (power(left - 1), power(left));
        let mut units = Units::new(self.d);
        for (shift, sign) in [(RBig::ONE, 1), (RBig::ZERO, -1)] {
            let sign = RBig::from(sign);
            units.add(&[(v, RBig::ONE)], &shift - &half, &[(v, -(&half * &sign))]);
            // The same, but silent where `match` is 0.
            let gate = &shift - &half - &whole;
            units.add(&[(v, RBig::ONE), (matched, whole.clone())], gate, &[(label, power(bit) * &sign)]);
        }
        units.block()
    }

    /// Takes the top one of `left` bits off V and subtracts it, at its place, from z.
    fn distance_bit(&self, left: usize, bit: usize) -> FeedForward<RBig> {
        let Registers { z, v, .. } = self.registers;
        let half = power(left - 1);
        let mut units = Units::new(self.d);
        for (shift, sign) in [(RBig::ONE, 1), (RBig::ZERO, -1)] {
            let sign = RBig::from(sign);
            units.add(&[(v, RBig::ONE)], shift - &half, &[(v, -(&half * &sign)), (z, -(power(bit) * &sign))]);
        }
        units.block()
    }

    /// The head that finds the whole number nearest to the register `label`.
    fn head(&self, names: &[String]) -> LabelHead<RBig> {
        let number = |l: usize| RBig::from(l as u64);
        let weight = |l: usize, i: usize| if i == self.registers.label { number(l) } else { RBig::ZERO };
        LabelHead {
            labels: names.to_vec(),
            weight: Matrix::from_fn(names.len(), self.d, weight),
            bias: (0..names.len()).map(|l| -(number(l) * number(l)) / RBig::from(2)).collect(),
        }
    }

    /// The last layer where labels are vectors: a ramp between any two whole numbers that `label` can be, all else cleared.
    fn write_outputs(&self, points: &Matrix<f64>, rows: &Matrix<f64>, range: RBig) -> FeedForward<RBig> {
        let mut units = Units::new(self.d);
        let label = self.registers.label;
        let bound = Self::bound(rows);
        // z starts within the range of x, and goes down by the distances of a block.
        let lowest = range * RBig::from(2) + power(self.packing.distance_bits) * RBig::from(self.packing.block as u64);
        for i in 0..self.d {
            let bound = if i == self.registers.z { lowest.clone() } else { bound.clone() };
            units.clear(i, &bound);
            units.bias(i, rational(points.row(0)[i]));
        }
        let (two, ones) = (RBig::from(2), |i: usize, l: usize| rational(points.row(l)[i]));
        for l in 1..points.rows {
            let rise = |i: usize| (i, (ones(i, l) - ones(i, l - 1)) * &two);
            let up: Vec<(usize, RBig)> = (0..self.d).map(rise).filter(|(_, x)| !x.is_zero()).collect();
            let down: Vec<(usize, RBig)> = up.iter().map(|(i, x)| (*i, -x.clone())).collect();
            let at = |quarters: u64| -RBig::from_parts((4 * l as u64 - quarters).into(), 4_u8.into());
            units.add(&[(label, RBig::ONE)], at(3), &up);
            units.add(&[(label, RBig::ONE)], at(1), &down);
        }
        units.block()
    }

    /// A power of two beyond the coordinates of all tokens after attention, and labels.
    fn bound(rows: &Matrix<f64>) -> RBig {
        let largest = rows.data.iter().fold(1.0_f64, |m, x| m.max(x.abs()));
        rational((largest.log2().floor() + 1.0).exp2())
    }
}

fn power(exponent: usize) -> RBig {
    RBig::from(UBig::ONE << exponent)
}

/// A feed-forward block, unit by unit.
struct Units {
    d: usize,
    /// Row of W1, bias, column of W2.
    list: Vec<(Vec<RBig>, RBig, Vec<RBig>)>,
    b2: Vec<RBig>,
}

impl Units {
    fn new(d: usize) -> Self {
        Self { d, list: Vec::new(), b2: vec![RBig::ZERO; d] }
    }

    fn dense(&self, entries: &[(usize, RBig)]) -> Vec<RBig> {
        let mut row = vec![RBig::ZERO; self.d];
        for (i, x) in entries {
            row[*i] += x;
        }
        row
    }

    /// A unit `relu(input . h + bias)`, which adds `output` times its value.
    fn add(&mut self, input: &[(usize, RBig)], bias: RBig, output: &[(usize, RBig)]) {
        self.list.push((self.dense(input), bias, self.dense(output)));
    }

    /// Adds to the output bias.
    fn bias(&mut self, i: usize, x: RBig) {
        self.b2[i] += x;
    }

    /// Takes the skip of a coordinate above `-bound` out.
    fn clear(&mut self, i: usize, bound: &RBig) {
        self.add(&[(i, RBig::ONE)], bound.clone(), &[(i, -RBig::ONE)]);
        self.bias(i, bound.clone());
    }

    fn block(self) -> FeedForward<RBig> {
        let q = self.list.len();
        let w1 = self.list.iter().flat_map(|(w1, _, _)| w1.clone()).collect();
        FeedForward {
            w1: Matrix::new(q, self.d, w1),
            b1: self.list.iter().map(|(_, b1, _)| b1.clone()).collect(),
            w2: Matrix::from_fn(self.d, q, |i, j| self.list[j].2[i].clone()),
            b2: self.b2,
        }
    }
}
