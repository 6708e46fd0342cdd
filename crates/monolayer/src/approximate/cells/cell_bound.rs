//! The error of one output in one cell: the cell is cut into boxes until the bound is sharp enough.

use super::Cell;
use super::box_moments::{BoxMoments, power};
use crate::approximate::function::{Asked, Enclosure, Function};
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

    /// What is inside of its faces, where it is wide enough.
    fn inside(&self) -> Option<Vec<Interval>> {
        let wide = self.sides.iter().all(|side| side.width() >= 64.0 * SHELL);
        wide.then(|| self.sides.iter().map(|side| Interval::new(side.lo() + SHELL, side.hi() - SHELL)).collect())
    }

    /// What is left of it around its inside, which the function does not jump in.
    fn shell(&self) -> Self {
        // Each side loses SHELL at each end, and a rounding.
        let lost: f64 = self.sides.iter().map(|side| 2.001 * SHELL / side.width()).sum();
        let (sides, moments) = (self.sides.clone(), self.moments.clone());
        Self { sides, volume: lost * self.volume, moments, loose: 0.0, closed: false, whole: false }
    }
}

/// Cuts a piece in two, across the entry that blurs it most, and the longest of these.
fn halves(piece: &Piece) -> [Vec<Interval>; 2] {
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
        sides
    })
}

/// One output in one cell, while the cell is being cut: it asks for boxes to be enclosed, and hears what is in them. Many cells
/// ask side by side, so that a function for which a call is what costs is called for all of them at once.
pub(super) struct CellBound {
    /// The place of the output token.
    pub token: usize,
    /// The output coordinate.
    pub output: usize,
    p: f64,
    /// The arrangements of tokens that the cell stands for.
    weight: f64,
    /// The cell is cut into at most so many pieces,
    most: usize,
    /// until loose enclosures add at most this.
    enough: f64,
    /// The level, as guessed first.
    guess: Option<f64>,
    pieces: Vec<Piece>,
    evaluations: usize,
    wanted: NextBoxes,
}

/// The boxes that a cell asks for.
enum NextBoxes {
    Nothing,
    /// All of it.
    Whole(Vec<Interval>),
    /// The inside of a piece.
    Inside(usize, Vec<Interval>),
    /// The halves of a piece.
    Halves(usize, [Vec<Interval>; 2]),
}

/// Cuts cells until each is bounded, all of them side by side.
pub(super) fn bound_all(f: &dyn Function, mut cells: Vec<CellBound>) -> Vec<BoundedCell> {
    loop {
        let asked: Vec<Asked> = cells.iter().flat_map(CellBound::asks).collect();
        if asked.is_empty() {
            return cells.iter().map(CellBound::conclude).collect();
        }
        let mut heard = f.enclose_all(&asked).into_iter();
        for cell in &mut cells {
            cell.hear(&mut heard);
        }
    }
}

impl CellBound {
    /// An output in a cell that stands for `weight` arrangements of tokens.
    pub fn new(cell: &Cell, output: usize, p: f64, weight: f64, sides: Vec<Interval>) -> Self {
        Self {
            token: cell.token,
            output,
            p,
            weight,
            most: 1,
            enough: f64::INFINITY,
            guess: None,
            pieces: Vec::new(),
            evaluations: 0,
            wanted: NextBoxes::Whole(sides),
        }
    }

    /// Cut into at most `most` pieces, until loose enclosures add at most `enough`.
    pub fn cut_into(self, most: usize, enough: f64) -> Self {
        Self { most, enough, ..self }
    }

    /// The boxes that it wants to know about.
    fn asks(&self) -> impl Iterator<Item = Asked<'_>> {
        let boxes: &[Vec<Interval>] = match &self.wanted {
            NextBoxes::Nothing => &[],
            NextBoxes::Whole(sides) | NextBoxes::Inside(_, sides) => std::slice::from_ref(sides),
            NextBoxes::Halves(_, halves) => halves,
        };
        boxes.iter().map(|sides| Asked { sides, token: self.token, output: self.output })
    }

    /// Takes what it asked for, and asks for more.
    fn hear(&mut self, enclosures: &mut impl Iterator<Item = Enclosure>) {
        let mut piece = |bound: &Self, sides: Vec<Interval>| {
            bound.piece(sides, &enclosures.next().expect("an enclosure for each box"))
        };
        match std::mem::replace(&mut self.wanted, NextBoxes::Nothing) {
            NextBoxes::Nothing => return,
            NextBoxes::Whole(sides) => {
                let whole = piece(self, sides);
                self.guess = Some(whole.moments.middle());
                self.pieces.push(whole);
                self.evaluations = 1;
            }
            NextBoxes::Inside(worst, sides) => {
                let core = piece(self, sides);
                self.evaluations += 1;
                if core.blurred() {
                    // The function jumps inside, too.
                    self.wanted = NextBoxes::Halves(worst, halves(&self.pieces[worst]));
                    return;
                }
                self.evaluations += 2;
                let shell = self.pieces[worst].shell();
                self.pieces[worst] = Piece { closed: false, ..core };
                self.pieces.push(shell);
            }
            NextBoxes::Halves(worst, [first, second]) => {
                self.pieces[worst] = piece(self, first);
                let second = piece(self, second);
                self.pieces.push(second);
                self.evaluations += 2;
            }
        }
        self.wanted = self.next();
    }

    /// What to look at next: the piece that is known worst.
    fn next(&self) -> NextBoxes {
        let pieces = &self.pieces;
        let loose: f64 = pieces.iter().map(|piece| piece.loose).sum();
        let most = if loose.is_infinite() && self.most > 1 { LAST_RESORT } else { self.most };
        if loose <= self.enough || pieces.len() >= most {
            return NextBoxes::Nothing;
        }
        let order = |i: &usize, j: &usize| pieces[*i].loose.total_cmp(&pieces[*j].loose).then(j.cmp(i));
        let worst = (0..pieces.len()).filter(|i| pieces[*i].whole).max_by(order).expect("a cell has an inside");
        let try_open = pieces[worst].closed && pieces.len() < FEW && pieces[worst].blurred();
        match pieces[worst].inside().filter(|_| try_open) {
            Some(inside) => NextBoxes::Inside(worst, inside),
            None => NextBoxes::Halves(worst, halves(&pieces[worst])),
        }
    }

    fn piece(&self, sides: Vec<Interval>, enclosure: &Enclosure) -> Piece {
        let moments = BoxMoments::new(enclosure, &sides);
        let volume = self.weight * sides.iter().map(|x| x.width()).product::<f64>();
        let loose = volume * moments.mean(self.guess.unwrap_or_else(|| moments.middle()), self.p).1;
        Piece { sides, volume, moments, loose, closed: true, whole: true }
    }

    /// The level and its error from the pieces.
    fn conclude(&self) -> BoundedCell {
        let (pieces, evaluations) = (&self.pieces, self.evaluations);
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
