//! The level of each cell, and a certified bound on how far f is from it.
//!
//! The cost is the integral of |f - level|^p, not the largest |f - level|: a cell is cut into boxes until little of what is
//! known about it is due to loose enclosures. A jump inside a cell costs what it must, one along its face next to nothing.

use rayon::prelude::*;

use super::patch::{Patch, SLACK, power};
use super::{Cell, Cells, Grid};
use crate::arithmetic::Interval;
use crate::error::{Error, Result};
use crate::function::Function;

/// The part of the whole error that loose enclosures may add.
const LOOSE: f64 = 0.02;

/// Boxes in a cell where a function that is known to be defined still has no bound, at most.
const LAST_RESORT: usize = 20_000;

/// A level per cell, and what is certain about them.
#[derive(Debug, Clone)]
pub struct Levels {
    /// The cells.
    pub cells: Cells,
    /// The exponent p of d_p.
    pub p: f64,
    /// Row-major `[M, d]`: the value that stands for f in each cell.
    pub levels: Vec<f64>,
    /// For each cell and output coordinate, an upper bound on |f - level|, row-major `[M, d]`.
    pub sup: Vec<f64>,
    /// An upper bound on the integral over the cube of |f - level|^p, summed over all d n entries: d_p^p of the
    /// staircase without ramps.
    pub error: f64,
    /// For each output coordinate, a range of f over the cube.
    pub range: Vec<Interval>,
    /// How often f was enclosed.
    pub evaluations: usize,
}

/// What is known about one cell.
#[derive(Clone)]
struct Known {
    levels: Vec<f64>,
    sup: Vec<f64>,
    range: Vec<Interval>,
    /// Bounds the integral of |f - level|^p over all arrangements of the cell, in all output coordinates.
    error: f64,
    /// About how much of that is due to loose enclosures.
    loose: f64,
    evaluations: usize,
}

/// Levels for all cells of a grid; `effort` is the number of boxes that a cell is cut into, at most.
///
/// The function must be defined on the cube.
pub fn levels(f: &dyn Function, grid: &Grid, p: f64, effort: usize) -> Result<Levels> {
    if !(p >= 1.0 && p.is_finite()) {
        return Err(Error::request(format!("p = {p}"), "p is a number from 1 on"));
    }
    let cells = Cells { token_cells: grid.token_cells(), length: f.length(), symmetric: f.is_equivariant() };
    let count = cells.count().filter(|count| *count <= u64::from(u32::MAX)).ok_or_else(|| {
        Error::request(
            format!("{} cells of a token make too many cells of sequences", cells.token_cells),
            "use a coarser grid",
        )
    })?;
    let look = |index: u64, effort: usize, enough: f64| {
        let cell = cells.cell(index);
        look_at(f, grid, &cell, cells.multiplicity(&cell), p, effort, enough)
    };
    let mut known: Vec<Known> = (0..count).into_par_iter().map(|index| look(index, 1, f64::INFINITY)).collect();
    let mut tries = 1;
    let mut evaluations = count as usize;
    while tries < effort {
        tries = (4 * tries).min(effort);
        let whole: f64 = known.iter().map(|known| known.error).sum();
        let loose: f64 = known.iter().map(|known| known.loose).sum();
        if loose <= LOOSE * whole {
            break;
        }
        let enough = LOOSE * whole.min(f64::MAX) / count as f64;
        evaluations += known
            .par_iter_mut()
            .enumerate()
            .map(|(index, known)| {
                if known.loose <= enough {
                    return 0;
                }
                *known = look(index as u64, tries, enough);
                known.evaluations
            })
            .sum::<usize>();
    }
    join(f, cells, p, &known, evaluations)
}

/// All cells together.
fn join(f: &dyn Function, cells: Cells, p: f64, known: &[Known], evaluations: usize) -> Result<Levels> {
    if let Some((index, _)) = known.iter().enumerate().find(|(_, known)| !known.error.is_finite()) {
        return Err(Error::request(
            format!("no bound on the function was found in cell {:?}", cells.cell(index as u64).tokens),
            "use a finer grid, or a function that stays farther from where it is undefined",
        ));
    }
    let sum: f64 = known.iter().map(|known| known.error).sum();
    let places = if cells.symmetric { f.length() as f64 } else { 1.0 };
    let hull = |k: usize| known.iter().map(|known| known.range[k]).reduce(Interval::hull).expect("at least one cell");
    Ok(Levels {
        cells,
        p,
        levels: known.iter().flat_map(|known| known.levels.iter().copied()).collect(),
        sup: known.iter().flat_map(|known| known.sup.iter().copied()).collect(),
        error: sum * places * SLACK,
        range: (0..f.dim()).map(hull).collect(),
        evaluations,
    })
}

/// A part of a cell.
struct Piece {
    sides: Vec<Interval>,
    volume: f64,
    /// One per output coordinate.
    patches: Vec<Patch>,
    /// The part of the error that is due to loose enclosures, for the levels guessed first.
    loose: f64,
}

struct Look<'a> {
    f: &'a dyn Function,
    token: usize,
    p: f64,
    /// Levels, as guessed first.
    guess: Vec<f64>,
    weight: f64,
}

impl Look<'_> {
    fn piece(&self, sides: Vec<Interval>) -> Piece {
        let patches: Vec<Patch> =
            self.f.enclose(&sides, self.token).iter().map(|enclosure| Patch::new(enclosure, &sides)).collect();
        let volume = self.weight * sides.iter().map(|x| x.width()).product::<f64>();
        let mut piece = Piece { sides, volume, patches, loose: 0.0 };
        piece.loose = self.loose(&piece);
        piece
    }

    fn loose(&self, piece: &Piece) -> f64 {
        let guess = |k: usize| self.guess.get(k).copied().unwrap_or_else(|| piece.patches[k].middle());
        let loose = |k: usize| piece.patches[k].mean(guess(k), self.p).1;
        piece.volume * (0..piece.patches.len()).map(loose).sum::<f64>()
    }

    /// Cuts a piece in two, across the entry that blurs it most.
    fn cut(&self, piece: &Piece) -> [Piece; 2] {
        let blur = |i: usize| piece.patches.iter().map(|patch| patch.blur()[i]).fold(0.0, f64::max);
        let key = |i: usize| (blur(i), piece.sides[i].width());
        let entry = (0..piece.sides.len())
            .max_by(|&i, &j| key(i).0.total_cmp(&key(j).0).then(key(i).1.total_cmp(&key(j).1)).then(j.cmp(&i)))
            .expect("at least one entry");
        let side = piece.sides[entry];
        [Interval::new(side.lo(), side.center()), Interval::new(side.center(), side.hi())].map(|half| {
            let mut sides = piece.sides.clone();
            sides[entry] = half;
            self.piece(sides)
        })
    }
}

/// Looks at a cell, cutting it into at most `effort` pieces, until loose enclosures add at most `enough`.
fn look_at(f: &dyn Function, grid: &Grid, cell: &Cell, weight: f64, p: f64, effort: usize, enough: f64) -> Known {
    let mut look = Look { f, token: cell.token, p, guess: Vec::new(), weight };
    let mut pieces = vec![look.piece(grid.sequence_box(cell))];
    look.guess = pieces[0].patches.iter().map(Patch::middle).collect();
    let mut evaluations = 1;
    let mut loose = pieces[0].loose;
    while loose > enough && (pieces.len() < effort || loose.is_infinite() && pieces.len() < LAST_RESORT && effort > 1) {
        let (worst, _) = pieces
            .iter()
            .enumerate()
            .max_by(|(i, a), (j, b)| a.loose.total_cmp(&b.loose).then(j.cmp(i)))
            .expect("at least one piece");
        let [first, second] = look.cut(&pieces[worst]);
        pieces[worst] = first;
        pieces.push(second);
        evaluations += 2;
        loose = pieces.iter().map(|piece| piece.loose).sum();
    }
    conclude(&pieces, p, evaluations)
}

/// Levels and their errors from the pieces of a cell.
fn conclude(pieces: &[Piece], p: f64, evaluations: usize) -> Known {
    let outputs = pieces[0].patches.len();
    let mut known =
        Known { levels: Vec::new(), sup: Vec::new(), range: Vec::new(), error: 0.0, loose: 0.0, evaluations };
    for k in 0..outputs {
        let level = best_level(pieces, k, p);
        let sup = pieces.iter().map(|piece| piece.patches[k].sup(level)).fold(0.0, f64::max);
        let range = pieces.iter().map(|piece| piece.patches[k].range).reduce(Interval::hull);
        for piece in pieces {
            let (mean, loose) = piece.patches[k].mean(level, p);
            known.error += piece.volume * mean;
            known.loose += piece.volume * loose;
        }
        known.levels.push(level);
        known.sup.push(sup);
        known.range.push(range.expect("at least one piece"));
    }
    known
}

/// About the level with the smallest error: the mean for p = 2; in general the zero of a monotone function, by bisection.
fn best_level(pieces: &[Piece], k: usize, p: f64) -> f64 {
    let values = || pieces.iter().map(|piece| (piece.volume, piece.patches[k].middle()));
    let volume: f64 = values().map(|(volume, _)| volume).sum();
    if pieces.len() == 1 || volume == 0.0 {
        return pieces[0].patches[k].middle();
    }
    if p == 2.0 {
        return values().map(|(volume, value)| volume * value).sum::<f64>() / volume;
    }
    let pull = |level: f64| {
        values()
            .map(|(volume, value)| volume * (value - level).signum() * power((value - level).abs(), p - 1.0))
            .sum::<f64>()
    };
    let (mut below, mut above) =
        values().fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), (_, value)| (lo.min(value), hi.max(value)));
    for _ in 0..50 {
        let middle = f64::midpoint(below, above);
        if pull(middle) > 0.0 { below = middle } else { above = middle }
    }
    f64::midpoint(below, above)
}
