//! Units that give words their base label, in time that grows with the vocabulary alone: words are cut into blocks by the first
//! signs of their codes, and halfspaces are searched for in one block at a time.
//!
//! A halfspace `n . x > t` over the other signs of a block's words becomes a unit `M s . y + n . x > t + M b` with the b signs s of
//! the block. For words of the block s . y = b. For all others s . y <= b - 2, so that the unit is shut by its margin if
//! `2 M >= |n|_1 - t + margin`, whatever n says of them.

use crate::arithmetic::matrix::Matrix;
use crate::arithmetic::parallel;
use crate::error::Result;
use crate::memorize::gated::code_points::{CodePoints, Codes};
use crate::memorize::gated::halfspace_cover::{CoverEffort, Halfspace, Target, cover};
use crate::memorize::gated::{Unit, columns, label_output, size, too_close};

/// Words of a block, at most about.
const BLOCK: usize = 4096;

/// Units for words.
pub struct WordUnits {
    /// The units.
    pub units: Vec<Unit>,
    /// The units that fire for each word. They are shut by their margin for words with other base labels; for a word with the same
    /// one they compute exactly 0 or less, and sums are exact.
    pub of_word: Vec<Vec<u32>>,
    /// How strongly each word gets its base label.
    pub strength: Vec<f64>,
}

/// What words must get, and from whom nothing is asked.
pub struct WordTargets<'a> {
    /// Their codes, of +1 and -1.
    pub codes: &'a Matrix<f64>,
    /// Their base labels.
    pub base: &'a [u32],
    /// The label that needs no units.
    pub default: u32,
    /// The words for which any label will do.
    pub free: &'a [bool],
    /// A vector per label.
    pub label_codes: &'a Matrix<f64>,
}

impl WordTargets<'_> {
    /// The units.
    pub fn units(&self, effort: CoverEffort) -> Result<WordUnits> {
        let words = self.codes.rows;
        let mut bits = 0;
        while words >> bits > BLOCK && bits + 8 < self.codes.cols {
            bits += 1;
        }
        let blocks = self.blocks(bits);
        // The targets of one label in one block.
        let mut jobs: Vec<(usize, u32)> = Vec::new();
        for (b, block) in blocks.iter().enumerate() {
            let mut labels: Vec<u32> = block.iter().map(|&w| self.base[w as usize]).collect();
            labels.sort_unstable();
            labels.dedup();
            jobs.extend(labels.into_iter().filter(|&label| label != self.default).map(|label| (b, label)));
        }
        let codes = parallel::map_slice(&blocks, |block| self.block_codes(block, bits));
        let of_job = |i: usize| {
            let (b, label) = jobs[i];
            self.of_label(&blocks[b], &codes[b], label, bits, effort)
        };
        let found = parallel::try_map(jobs.len(), of_job)?;
        let mut all = WordUnits { units: Vec::new(), of_word: vec![Vec::new(); words], strength: vec![0.0; words] };
        for (unit, holds) in found.into_iter().flatten() {
            let largest = size(&unit.output);
            for w in holds {
                all.of_word[w as usize].push(all.units.len() as u32);
                all.strength[w as usize] += unit.before(self.codes.row(w as usize), 0.0) * largest;
            }
            all.units.push(unit);
        }
        Ok(all)
    }

    /// The words by the first signs of their codes.
    fn blocks(&self, bits: usize) -> Vec<Vec<u32>> {
        let mut blocks = vec![Vec::new(); 1 << bits];
        for (w, code) in self.codes.iter_rows().enumerate() {
            let block = code[..bits].iter().fold(0, |block, &x| 2 * block + usize::from(x > 0.0));
            blocks[block].push(w as u32);
        }
        blocks.retain(|block| !block.is_empty());
        blocks
    }

    /// The other signs of the codes of a block.
    fn block_codes(&self, block: &[u32], bits: usize) -> Codes {
        let data = block.iter().flat_map(|&w| &self.codes.row(w as usize)[bits..]).copied().collect();
        Codes::new(columns(&Matrix::new(block.len(), self.codes.cols - bits, data), 0..self.codes.cols - bits))
    }

    /// The units of a label in a block, and the words that each fires for.
    fn of_label(
        &self,
        block: &[u32],
        codes: &Codes,
        label: u32,
        bits: usize,
        effort: CoverEffort,
    ) -> Result<Vec<(Unit, Vec<u32>)>> {
        let own = |&i: &usize| self.base[block[i] as usize] == label;
        let targets: Vec<usize> = (0..block.len()).filter(own).collect();
        let other = |&w: &u32| (self.base[w as usize] != label && !self.free[w as usize]).then_some((0.0, 0.0));
        let forbidden: Vec<Option<(f64, f64)>> = block.iter().map(other).collect();
        let list: Vec<(u32, u32)> = (0..block.len() as u32).map(|i| (i, 0)).collect();
        let points = CodePoints::new(codes, None, &list);
        let wanted: Vec<Target> = targets.iter().map(|&point| Target { point, ids: (0.0, 0.0) }).collect();
        let (halfspaces, failed) = cover(&points, &wanted, &forbidden, effort);
        if let Some(&target) = failed.first() {
            return Err(too_close("word", block[targets[target]] as usize));
        }
        let signs = &self.codes.row(block[0] as usize)[..bits];
        let unit = |h: Halfspace| {
            let holds = h.holds.iter().map(|&i| block[i as usize]).collect();
            (self.unit(&h, signs, label), holds)
        };
        Ok(halfspaces.into_iter().map(unit).collect())
    }

    fn unit(&self, halfspace: &Halfspace, signs: &[f64], label: u32) -> Unit {
        let Halfspace { normal, threshold, margin, .. } = halfspace;
        let lengths: f64 = normal.iter().map(|x| x.abs()).sum();
        let weight = ((lengths - threshold + margin) / 2.0).max(1.0).log2().ceil().exp2();
        let code: Vec<f64> = signs.iter().map(|s| weight * s).chain(normal.iter().copied()).collect();
        let bias = -(threshold + weight * signs.len() as f64);
        let scale = margin.log2().floor().exp2();
        Unit {
            code: code.into(),
            id: 0.0,
            bias,
            output: label_output(self.label_codes, &[(label, 1.0 / scale)], |x| x),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::far_codes;
    use crate::memorize::settings::Effort;

    #[test]
    fn each_word_has_its_label_and_no_other_unit() {
        for (dimension, words, labels) in [(64, 9000, 5), (32, 9000, 3), (32, 3, 2), (64, 1, 1)] {
            let codes = far_codes::codes(dimension, words, 5).unwrap();
            let base: Vec<u32> =
                (0..words as u32).map(|w| w.wrapping_mul(2_654_435_761) >> 16).map(|x| x % labels).collect();
            let free = vec![false; words];
            let label_codes = Matrix::from_fn(labels as usize, labels as usize, |i, j| f64::from(u8::from(i == j)));
            let targets =
                WordTargets { codes: &codes, base: &base, default: 0, free: &free, label_codes: &label_codes };
            let found = targets.units(Effort::Fast.for_words()).unwrap();
            for (w, code) in codes.iter_rows().enumerate() {
                let mut scores = vec![0.0; labels as usize];
                scores[0] = 0.25;
                for (j, unit) in found.units.iter().enumerate() {
                    let before = unit.before(code, 0.0);
                    assert_eq!(before > 0.0, found.of_word[w].contains(&(j as u32)));
                    let label = unit.output.iter().position(|&x| x != 0.0);
                    assert!(label == Some(base[w] as usize) || before <= -0.25, "{before}");
                    scores.iter_mut().zip(&unit.output).for_each(|(s, o)| *s += before.max(0.0) * o);
                }
                let others = scores.iter().enumerate().filter(|&(l, _)| l != base[w] as usize);
                assert!(others.clone().all(|(_, s)| *s < scores[base[w] as usize]), "{scores:?} {}", base[w]);
            }
        }
    }
}
