//! The error of one output in one cell: the cell is cut into boxes until the bound is sharp enough.

use super::Cell;
use super::box_moments::{BoxMoments, power};
use crate::approximate::function::Function;
use crate::arithmetic::Interval;

/// Pieces of a cell where a function that is known to be defined still has no bound, at most.
const LAST_RESORT: usize = 20_000;

/// What is set aside around a piece whose faces a jump may touch: edges are rounded to multiples of this.
const SHELL: f64 = 1.0 / (1_u64 << 31) as f64;

/// Shells are tried while there are fewer pieces than this.
const FEW: usize = 16;

/// What is known about one output in one cell.
pub(super) struct BoundedCell {
    /// The value that stands for f.
    pub level: f64,
    /// At least |f - level|.
    pub sup: f64,
    /// Contains f.
    pub range: Interval,
    /// Bounds the integral of |f - level|^p over all arrangements of the cell.
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
    moments: BoxMoments,
    /// The part of the error that is due to loose enclosures, for the level guessed first.
    loose: f64,
    /// Whether it is worth trying what is inside of its faces.
    closed: bool,
    /// Whether it is a whole box, which may be cut, and not a shell inside of one.
    whole: bool,
}

impl Piece {
    /// Whether the function may jump in it.
    fn blurred(&self) -> bool {
        self.moments.blur().iter().any(|blur| blur.is_infinite())
    }
}

/// What is looked at.
pub(super) struct CellBound<'a> {
    f: &'a dyn Function,
    token: usize,
    output: usize,
    p: f64,
    /// The arrangements of tokens that the cell stands for.
    weight: f64,
    /// The level, as guessed first.
    guess: Option<f64>,
}

impl<'a> CellBound<'a> {
    /// An output in a cell that stands for `weight` arrangements of tokens.
    pub fn new(f: &'a dyn Function, cell: &Cell, output: usize, p: f64, weight: f64) -> Self {
        Self { f, token: cell.token, output, p, weight, guess: None }
    }

    /// Cuts the cell's box into at most `most` pieces, until loose enclosures add at most `enough`.
    pub fn at(mut self, sides: Vec<Interval>, most: usize, enough: f64) -> BoundedCell {
        let mut pieces = vec![self.piece(sides)];
        self.guess = Some(pieces[0].moments.middle());
        let mut evaluations = 1;
        loop {
            let loose: f64 = pieces.iter().map(|piece| piece.loose).sum();
            let most = if loose.is_infinite() && most > 1 { LAST_RESORT } else { most };
            if loose <= enough || pieces.len() >= most {
                return self.conclude(&pieces, evaluations);
            }
            let order = |i: &usize, j: &usize| pieces[*i].loose.total_cmp(&pieces[*j].loose).then(j.cmp(i));
            let worst = (0..pieces.len()).filter(|i| pieces[*i].whole).max_by(order).expect("a cell has an inside");
            let try_open = pieces[worst].closed && pieces.len() < FEW && pieces[worst].blurred();
            let opened = if try_open { self.open(&pieces[worst]) } else { None };
            let [first, second] = opened.unwrap_or_else(|| self.cut(&pieces[worst]));
            evaluations += 2 + usize::from(try_open);
            pieces[worst] = first;
            pieces.push(second);
        }
    }

    fn piece(&self, sides: Vec<Interval>) -> Piece {
        let moments = BoxMoments::new(&self.f.enclose(&sides, self.token, self.output), &sides);
        let volume = self.weight * sides.iter().map(|x| x.width()).product::<f64>();
        let loose = volume * moments.mean(self.guess.unwrap_or_else(|| moments.middle()), self.p).1;
        Piece { sides, volume, moments, loose, closed: true, whole: true }
    }

    /// Cuts a piece in two, across the entry that blurs it most, and the longest of these.
    fn cut(&self, piece: &Piece) -> [Piece; 2] {
        let key = |i: usize| (piece.moments.blur()[i], piece.sides[i].width());
        let order = |i: &usize, j: &usize| {
            let (first, second) = (key(*i), key(*j));
            first.0.total_cmp(&second.0).then(first.1.total_cmp(&second.1)).then(j.cmp(i))
        };
        let entry = (0..piece.sides.len()).max_by(order).expect("at least one entry");
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
        let core = Piece { closed: false, ..self.piece(inside) };
        if core.blurred() {
            return None;
        }
        // Each side loses SHELL at each end, and a rounding.
        let lost: f64 = piece.sides.iter().map(|side| 2.001 * SHELL / side.width()).sum();
        let (sides, moments) = (piece.sides.clone(), piece.moments.clone());
        Some([core, Piece { sides, volume: lost * piece.volume, moments, loose: 0.0, closed: false, whole: false }])
    }

    /// The level and its error from the pieces.
    fn conclude(&self, pieces: &[Piece], evaluations: usize) -> BoundedCell {
        let level = self.best_level(pieces);
        let (mut error, mut loose) = (0.0, 0.0);
        for piece in pieces {
            // The mean over a box says nothing about the mean over a shell of it.
            let moments = &piece.moments;
            let (mean, more) =
                if piece.whole { moments.mean(level, self.p) } else { (moments.largest(level, self.p), 0.0) };
            error += piece.volume * mean;
            loose += piece.volume * more;
        }
        let sup = pieces.iter().map(|piece| piece.moments.sup(level)).fold(0.0, f64::max);
        let range = pieces.iter().map(|piece| piece.moments.range).reduce(Interval::hull).expect("at least one piece");
        BoundedCell { level, sup, range, error, loose, evaluations }
    }

    /// About the level with the smallest error: the mean for p = 2; in general the zero of a monotone function, by bisection.
    fn best_level(&self, pieces: &[Piece]) -> f64 {
        let values = || pieces.iter().map(|piece| (piece.volume, piece.moments.middle()));
        let volume: f64 = values().map(|(volume, _)| volume).sum();
        if pieces.len() == 1 || volume == 0.0 {
            return pieces[0].moments.middle();
        }
        if self.p == 2.0 {
            return values().map(|(volume, value)| volume * value).sum::<f64>() / volume;
        }
        let pull = |level: f64| {
            let term = |(volume, value): (f64, f64)| {
                volume * (value - level).signum() * power((value - level).abs(), self.p - 1.0)
            };
            values().map(term).sum::<f64>()
        };
        let (mut below, mut above) =
            values().fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), (_, value)| (lo.min(value), hi.max(value)));
        for _ in 0..50 {
            let middle = f64::midpoint(below, above);
            if pull(middle) > 0.0 { below = middle } else { above = middle }
        }
        f64::midpoint(below, above)
    }
}
