//! One cell, cut into pieces until what is known about it is good enough.

use super::patch::{Patch, power};
use super::{Cell, Grid};
use crate::arithmetic::Interval;
use crate::function::Function;

/// Pieces of a cell where a function that is known to be defined still has no bound, at most.
const LAST_RESORT: usize = 20_000;

/// What is set aside around a piece whose faces a jump may touch: edges are rounded to multiples of this.
const SHELL: f64 = 1.0 / (1_u64 << 31) as f64;

/// What is known about one cell.
pub(super) struct Known {
    /// For each output coordinate, the value that stands for f.
    pub levels: Vec<f64>,
    /// At least |f - level|.
    pub sup: Vec<f64>,
    /// Contains f.
    pub range: Vec<Interval>,
    /// Bounds the integral of |f - level|^p over all arrangements of the cell, in all output coordinates.
    pub error: f64,
    /// About how much of that is due to loose enclosures.
    pub loose: f64,
    /// How often f was enclosed.
    pub evaluations: usize,
}

/// A part of a cell.
struct Piece {
    sides: Vec<Interval>,
    volume: f64,
    /// One per output coordinate.
    patches: Vec<Patch>,
    /// The part of the error that is due to loose enclosures, for the levels guessed first.
    loose: f64,
    /// Whether it is worth trying what is inside of its faces.
    closed: bool,
    /// Whether it is a whole box, which may be cut, and not a shell inside of one.
    whole: bool,
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
        let mut piece = Piece { sides, volume, patches, loose: 0.0, closed: true, whole: true };
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

    /// The inside of a piece, and a shell around it, if the function jumps at the faces only.
    fn open(&self, piece: &Piece) -> Option<[Piece; 2]> {
        if piece.sides.iter().any(|side| side.width() < 64.0 * SHELL) {
            return None;
        }
        let inside = piece.sides.iter().map(|side| Interval::new(side.lo() + SHELL, side.hi() - SHELL)).collect();
        let core = self.piece(inside);
        if core.blurred() {
            return None;
        }
        // Each side loses a little more than SHELL at each end, by rounding.
        let lost: f64 = piece.sides.iter().map(|side| 2.001 * SHELL / side.width()).sum();
        let shell = Piece {
            sides: piece.sides.clone(),
            volume: lost * piece.volume,
            patches: piece.patches.clone(),
            loose: 0.0,
            closed: false,
            whole: false,
        };
        Some([core, shell])
    }
}

impl Piece {
    /// Whether the function may jump in it.
    fn blurred(&self) -> bool {
        self.patches.iter().any(|patch| patch.blur().iter().any(|blur| blur.is_infinite()))
    }
}

/// Looks at a cell, cutting it into at most `effort` pieces, until loose enclosures add at most `enough`.
pub(super) fn look_at(
    f: &dyn Function,
    grid: &Grid,
    cell: &Cell,
    weight: f64,
    p: f64,
    effort: usize,
    enough: f64,
) -> Known {
    let mut look = Look { f, token: cell.token, p, guess: Vec::new(), weight };
    let mut pieces = vec![look.piece(grid.sequence_box(cell))];
    look.guess = pieces[0].patches.iter().map(Patch::middle).collect();
    let mut evaluations = 1;
    loop {
        let loose: f64 = pieces.iter().map(|piece| piece.loose).sum();
        let most = if loose.is_infinite() && effort > 1 { LAST_RESORT } else { effort };
        if loose <= enough || pieces.len() >= most {
            return conclude(&pieces, p, evaluations);
        }
        let order = |i: &usize, j: &usize| pieces[*i].loose.total_cmp(&pieces[*j].loose).then(j.cmp(i));
        let worst = (0..pieces.len()).filter(|i| pieces[*i].whole).max_by(order).expect("a cell has an inside");
        let try_open = std::mem::take(&mut pieces[worst].closed) && pieces.len() < 16 && pieces[worst].blurred();
        let opened = if try_open { look.open(&pieces[worst]) } else { None };
        evaluations += usize::from(try_open);
        let [first, second] = opened.unwrap_or_else(|| {
            evaluations += 2;
            look.cut(&pieces[worst])
        });
        pieces[worst] = first;
        pieces.push(second);
    }
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
            // The mean over a box says nothing about the mean over a shell of it.
            let patch = &piece.patches[k];
            let (mean, loose) = if piece.whole { patch.mean(level, p) } else { (patch.largest(level, p), 0.0) };
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
