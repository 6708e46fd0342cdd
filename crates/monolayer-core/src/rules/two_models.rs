//! Two models of one layer that differ in hidden units alone: where the units that differ can fire, and what that does to labels.

use super::ball::Ball;
use super::judge::{Inputs, Vectors};
use super::network::{Network, Unit};
use super::off_units::{Anywhere, Largest, OffUnits, Word, inputs_within};
use super::read_out::read_out;
use super::sum::Arithmetic;
use super::winners::winners;
use crate::number::{Dyadic, Format};

/// Tables with more entries are not made.
const MOST_ENTRIES: usize = 1 << 27;

/// So many units are looked at without tables, for all words and places.
const MOST_LOOKS: usize = 1 << 22;

/// The two models.
pub struct TwoModels<'a> {
    /// The first and the second.
    pub networks: [&'a Network; 2],
    /// The words' vectors, in the arithmetic that is judged.
    pub words: Vec<Vec<Dyadic>>,
    /// The places that a token of a sequence can have; one that says nothing without positions.
    pub places: std::ops::Range<usize>,
    /// What the head can read.
    pub range: Ball,
    format: Format,
    /// The units that both have, and those of each that the other has not.
    shared: Table<'a>,
    own: [Table<'a>; 2],
}

/// Some units of a network, and bounds of what they compute.
struct Table<'a> {
    units: Vec<usize>,
    tables: Option<(OffUnits<'a>, Anywhere)>,
}

/// The units that may be on for a token: those of both models, and each model's own.
#[derive(Clone, Default)]
pub struct Open {
    shared: Vec<usize>,
    own: [Vec<usize>; 2],
}

/// What was found of a token where the head reads something within an interval.
enum Look {
    /// No unit that differs fires: all scores are the same.
    Same,
    /// The labels that each model may give, which of them can change into which, and the units that may be on.
    Labels([Vec<usize>; 2], Moves, Open),
    /// A program may overflow.
    Nothing,
}

/// Which scores may be higher in the second model than in the first, and which lower, for the same program.
///
/// **Rule 12, second part.** A sum in a fixed order is monotone in each of its terms, since rounding is. So a coordinate can only rise where a unit
/// of the second model that may be on has a positive weight, or one of the first a negative one, and a score only with a coordinate. If label
/// a wins over b in the first model, a cannot fall and b cannot rise, then a wins over b in the second.
struct Moves {
    rises: Vec<bool>,
    falls: Vec<bool>,
}

impl Moves {
    /// Of the coordinates, from each model's own units that may be on.
    fn new(networks: [&Network; 2], own: &[Vec<Unit>; 2]) -> Self {
        let d = networks[0].blocks[0].part.as_ref().map_or(0, |part| part.w2.rows());
        let mut moves = Self { rises: vec![false; d], falls: vec![false; d] };
        for (m, units) in own.iter().enumerate() {
            for (c, w) in units.iter().flat_map(|unit| networks[m].blocks[0].writes(unit.index)) {
                // What the first model loses has the other sign.
                let weight = if m == 0 { -w.m } else { w.m };
                moves.rises[c] |= weight > 0;
                moves.falls[c] |= weight < 0;
            }
        }
        moves
    }

    /// Whether a label that the first model gives may become another.
    fn may_become(&self, network: &Network, a: usize, b: usize) -> bool {
        let moves = |l: usize, with: &[bool], against: &[bool]| {
            let read = |(c, w): (usize, Dyadic)| if w.m > 0 { with[c] } else { against[c] };
            network.head.as_ref().is_none_or(|(weight, _)| weight.weights(l).any(read))
        };
        moves(a, &self.falls, &self.rises) || moves(b, &self.rises, &self.falls)
    }
}

impl<'a> TwoModels<'a> {
    /// Takes networks that differ in the hidden units of their one layer at most; at most `seen` tokens are seen. Nothing where a program
    /// may overflow in what both have before these units.
    pub fn new(networks: [&'a Network; 2], words: Vec<Vec<Dyadic>>, places: usize, seen: usize) -> Option<Self> {
        let Arithmetic::Float { format, .. } = networks[0].arithmetic else { return None };
        let first = usize::from(networks[0].start && networks[0].positions.is_some());
        let nothing = vec![Dyadic::ZERO; words.first()?.len()];
        let rows = (0..places).map(|place| networks[0].input(&nothing, place)).collect::<Option<Vec<_>>>()?;
        let range = read_out(networks[0], &words, &rows, seen)?;
        // No token overflows behind attention, either.
        let inputs = inputs_within(networks[0].arithmetic, &Largest::of(&words)?, &Largest::of(&rows)?);
        let inputs: Vec<Ball> = inputs.into_iter().map(|(x, _)| x).collect();
        networks[0].blocks[0].skip(networks[0].arithmetic, &inputs, &[range])?;
        let offsets = [0, places];
        let inputs = Inputs { vectors: Vectors::Given(&words), ids: &[], offsets: &offsets, start: None };
        let [mut shared, mut own] = [vec![], vec![]];
        let mut other = vec![];
        for j in 0..networks[0].blocks[0].hidden().max(networks[1].blocks[0].hidden()) {
            match networks.map(|network| (j < network.blocks[0].hidden()).then_some(network)) {
                [Some(a), Some(b)] if same_unit(a, b, j) => shared.push(j),
                both => {
                    own.extend(both[0].filter(|network| network.blocks[0].may_fire(j)).map(|_| j));
                    other.extend(both[1].filter(|network| network.blocks[0].may_fire(j)).map(|_| j));
                }
            }
        }
        let table = |network: &'a Network, units: Vec<usize>| {
            let few = units.len().saturating_mul(places) <= MOST_ENTRIES;
            let tables = few.then(|| OffUnits::of(network, &inputs, &[range], units.clone(), 1)).flatten();
            let tables = tables.map(|tables| {
                let anywhere = tables.anywhere(&[range]);
                (tables, anywhere)
            });
            Table { units, tables }
        };
        let (shared, own) = (table(networks[0], shared), [table(networks[0], own), table(networks[1], other)]);
        // Without tables every unit is looked at for every word and place.
        let looks = |table: &Table| table.units.len().saturating_mul(words.len()).saturating_mul(places);
        if own.iter().any(|table| table.tables.is_none() && looks(table) > MOST_LOOKS) {
            return None;
        }
        Some(Self { networks, words, places: first..places, range, format, shared, own })
    }

    /// How many units one model has and the other has not, those left aside that never fire.
    pub fn differing(&self) -> usize {
        let mut all: Vec<usize> = self.own.iter().flat_map(|table| table.units.clone()).collect();
        all.sort_unstable();
        all.dedup();
        all.len()
    }

    /// The first place, of those asked about, at which a unit that differs may fire for a word.
    pub fn fires(&self, word: usize, asked: impl Fn(usize) -> bool) -> Option<usize> {
        let vector = &self.words[word];
        let known = [0, 1].map(|m| self.own[m].word(vector));
        if known.iter().all(|known| known.as_ref().is_some_and(Word::is_empty)) {
            return None;
        }
        let fires = |place: usize| {
            let open = [0, 1].map(|m| self.own[m].open(known[m].as_ref(), place, self.range));
            if open.iter().all(Vec::is_empty) {
                return false;
            }
            let Some(x) = self.input(word, place) else { return true };
            let open = Open { own: open, ..Open::default() };
            !matches!(self.units(&x, self.range, &open), Some((_, _, own)) if own.iter().all(Vec::is_empty))
        };
        self.places.clone().filter(|place| asked(*place)).find(|place| fires(*place))
    }

    /// A token before attention; nothing where it overflows.
    pub fn input(&self, word: usize, place: usize) -> Option<Vec<Ball>> {
        Some(self.networks[0].input(&self.words[word], place)?.into_iter().map(Ball::exact).collect())
    }

    /// The units that may be on for a token, whatever the head reads.
    pub fn open(&self, word: usize, place: usize) -> Open {
        let of = |table: &Table| table.open(table.word(&self.words[word]).as_ref(), place, self.range);
        Open { shared: of(&self.shared), own: [of(&self.own[0]), of(&self.own[1])] }
    }

    /// A token after attention, and the units that may be on where the head reads something within z: shared ones, and each model's own.
    fn units(&self, x: &[Ball], z: Ball, open: &Open) -> Option<(super::network::Attended, Vec<Unit>, [Vec<Unit>; 2])> {
        let (arithmetic, blocks) = (self.networks[0].arithmetic, self.networks.map(|network| &network.blocks[0]));
        let token = blocks[0].skip(arithmetic, x, &[z])?;
        let on = |m: usize, units: &[usize]| {
            let units = units.iter().map(|&j| blocks[m].unit(arithmetic, &token, j));
            let units = units.collect::<Option<Vec<Unit>>>()?.into_iter();
            Some(units.filter(|unit| !unit.after.is_zero()).collect::<Vec<Unit>>())
        };
        let own = [on(0, &open.own[0])?, on(1, &open.own[1])?];
        // Where none of them fires, nobody asks about the others.
        let shared = if own.iter().all(Vec::is_empty) { vec![] } else { on(0, &open.shared)? };
        Some((token, shared, own))
    }

    /// The outputs of both models for a token where the head reads something within z; nothing where a program may overflow.
    pub fn outputs(&self, x: &[Ball], z: Ball, open: &Open) -> Option<[Vec<Ball>; 2]> {
        let (token, shared, own) = self.units(x, z, open)?;
        let output = |m: usize| {
            let units = shared.iter().chain(&own[m]).copied().collect();
            let network = self.networks[m];
            Some(network.blocks[0].output(network.arithmetic, &token, units)?.whole)
        };
        Some([output(0)?, output(1)?])
    }

    fn look(&self, x: &[Ball], z: Ball, open: &Open) -> Look {
        let Some((token, shared, own)) = self.units(x, z, open) else { return Look::Nothing };
        if own.iter().all(Vec::is_empty) {
            return Look::Same;
        }
        let given = |m: usize| {
            let (network, units) = (self.networks[m], shared.iter().chain(&own[m]).copied().collect());
            let block = &network.blocks[0];
            winners(network, block, &token, &block.output(network.arithmetic, &token, units)?)
        };
        let (Some(first), Some(second)) = (given(0), given(1)) else { return Look::Nothing };
        let index = |units: &Vec<Unit>| units.iter().map(|unit| unit.index).collect::<Vec<usize>>();
        let open = Open { shared: index(&shared), own: [index(&own[0]), index(&own[1])] };
        Look::Labels([first, second], Moves::new(self.networks, &own), open)
    }

    /// The labels that each model may give a token where the head reads something within z; nothing where they are the same, or a program
    /// may overflow.
    pub fn labels(&self, x: &[Ball], z: Ball, open: &Open) -> Option<[Vec<usize>; 2]> {
        if let Look::Labels(labels, ..) = self.look(x, z, open) { Some(labels) } else { None }
    }

    /// All numbers that the head can read, as places among the numbers of the format: the first and the last.
    pub fn numbers(&self) -> (i64, i64) {
        self.places_within(self.range)
    }

    /// The first and the last number of the format within a ball, as places.
    pub fn places_within(&self, z: Ball) -> (i64, i64) {
        let (low, high, e) = z.ends();
        (-self.format.below(-low, e), self.format.below(high, e))
    }

    /// Shows that the label of a token changes only as allowed, from the first of a pair to the second, whatever number the head reads
    /// between two (by their places), by looking at so many intervals. Otherwise a number at which that was not shown.
    ///
    /// **Rule 12.** An interval is settled where no unit that differs fires in either model, or where every label that the first
    /// model may give and every one that the second may give are the same, a pair that is allowed, or one that cannot become the other.
    /// Others are halved.
    pub fn covers(
        &self,
        x: &[Ball],
        open: &Open,
        ends: (i64, i64),
        allowed: &[(usize, usize)],
        looks: &mut usize,
    ) -> Result<(), Dyadic> {
        let number = |place: i64| Ball::exact(self.format.number(place));
        let mut left = vec![(ends.0, ends.1, open.clone())];
        while let Some((low, high, open)) = left.pop() {
            if low > high {
                continue;
            }
            *looks = looks.saturating_sub(1);
            let z = if low == high { number(low) } else { number(low).hull(number(high)) };
            let (settled, open) = match self.look(x, z, &open) {
                Look::Same => (true, open),
                Look::Nothing => (false, open),
                Look::Labels([first, second], moves, open) => {
                    let fine = |a: usize, b: usize| {
                        a == b || allowed.contains(&(a, b)) || !moves.may_become(self.networks[0], a, b)
                    };
                    (first.iter().all(|a| second.iter().all(|b| fine(*a, *b))), open)
                }
            };
            if settled {
                continue;
            }
            if low == high || *looks == 0 {
                return Err(self.format.number(low));
            }
            let middle = number(low).plus(number(high)).scaled(-1).middle();
            let middle = self.format.below(middle.m.into(), middle.e).clamp(low, high - 1);
            left.push((middle + 1, high, open.clone()));
            left.push((low, middle, open));
        }
        Ok(())
    }
}

impl Table<'_> {
    /// The units that may be on for a word, where tables tell.
    fn word(&self, vector: &[Dyadic]) -> Option<Word> {
        self.tables.as_ref().and_then(|(tables, anywhere)| tables.among(vector, anywhere))
    }

    /// The units that may be on for a word at a place.
    fn open(&self, word: Option<&Word>, place: usize, z: Ball) -> Vec<usize> {
        match (&self.tables, word) {
            (Some((tables, _)), Some(word)) => tables.open(word, place, &[z]),
            _ => self.units.clone(),
        }
    }
}

/// Whether both networks have the same numbers for a unit.
fn same_unit(a: &Network, b: &Network, j: usize) -> bool {
    let column = a.blocks[0].writes(j).eq(b.blocks[0].writes(j));
    let (Some(a), Some(b)) = (&a.blocks[0].part, &b.blocks[0].part) else { return false };
    column && a.w1.weights(j).eq(b.w1.weights(j)) && a.b1.at(j) == b.b1.at(j)
}
