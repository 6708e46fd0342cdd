//! Whether an expression is defined and finite on the whole cube: certain, refuted by a point, or open.

use std::collections::VecDeque;

use super::elementary::{self, Trouble, Wrong};
use super::parse::{Binary, Unary};
use super::tape::{Index, Node, Tape};
use super::{Program, intersection};
use crate::approximate::function::Function;
use crate::arithmetic::Interval;

/// Boxes are not cut into narrower ones than this.
const NARROWEST: f64 = 1e-9;

/// Whether a function is defined and finite on the whole cube.
#[derive(Debug, Clone, PartialEq)]
pub enum Domain {
    /// It is, and here is a range for each output coordinate.
    Defined(Vec<Interval>),
    /// It is not: what goes wrong at which sequence.
    Undefined {
        /// The sequence, row-major.
        witness: Vec<f64>,
        /// What goes wrong there, in words.
        what: String,
    },
    /// The budget was used up; a box where it is open.
    Undecided {
        /// A box of sequences, row-major.
        place: Vec<Interval>,
        /// What may go wrong there, in words.
        what: String,
    },
}

impl Program {
    /// Whether the function is defined and finite on the whole cube, looking at `budget` boxes at most.
    pub fn domain(&self, budget: usize) -> Domain {
        let mut ranges: Vec<Option<Interval>> = vec![None; self.dim()];
        let mut open = None;
        for tapes in &self.tapes {
            for (output, tape) in tapes.iter().enumerate() {
                let search = BoxSearch { program: self, tape, output };
                match search.run(budget / (self.tapes.len() * tapes.len())) {
                    BoxVerdict::Defined(more) => {
                        ranges[output] = Some(ranges[output].map_or(more, |range| range.hull(more)));
                    }
                    BoxVerdict::Undefined(witness, what) => return Domain::Undefined { witness, what },
                    BoxVerdict::Open(place, what) => open = open.or(Some(Domain::Undecided { place, what })),
                }
            }
        }
        open.unwrap_or_else(|| Domain::Defined(ranges.into_iter().flatten().collect()))
    }
}

/// What is known of one output.
enum BoxVerdict {
    Defined(Interval),
    Undefined(Vec<f64>, String),
    Open(Vec<Interval>, String),
}

/// What becomes of a box.
enum Fate {
    Fine(Interval),
    Undefined(Vec<f64>, String),
    Split(usize, String),
}

struct BoxSearch<'a> {
    program: &'a Program,
    tape: &'a Tape,
    output: usize,
}

impl BoxSearch<'_> {
    fn run(&self, budget: usize) -> BoxVerdict {
        let entries = self.program.dim() * self.program.length();
        let mut boxes = VecDeque::from([vec![Interval::new(0.0, 1.0); entries]]);
        let mut range: Option<Interval> = None;
        let mut open: Option<(Vec<Interval>, String)> = None;
        let mut looked_at = 0;
        while let Some(place) = boxes.pop_front() {
            looked_at += 1;
            match self.look(&place) {
                Fate::Fine(more) => range = Some(range.map_or(more, |range| range.hull(more))),
                Fate::Undefined(witness, what) => return BoxVerdict::Undefined(witness, what),
                Fate::Split(entry, what) => {
                    if looked_at >= budget {
                        return BoxVerdict::Open(place, what);
                    }
                    if place[entry].width() < NARROWEST {
                        open = open.or(Some((place, what)));
                    } else {
                        boxes.extend(halves(&place, entry));
                    }
                }
            }
        }
        match open {
            Some((place, what)) => BoxVerdict::Open(place, what),
            None => BoxVerdict::Defined(range.expect("at least one box")),
        }
    }

    fn look(&self, place: &[Interval]) -> Fate {
        let mut known: Vec<(Index, Interval)> = Vec::new();
        loop {
            let ranges = self.tape.ranges_given(|i| place[i], &known);
            let Some((node, trouble)) = ranges.trouble else {
                return Fate::Fine(ranges.nodes[self.tape.output as usize]);
            };
            if let Some((witness, what)) = self.witness(place, node, trouble) {
                return Fate::Undefined(witness, what);
            }
            let critical = self.critical(node, trouble);
            let slopes = self.tape.slopes(critical, &ranges.nodes, &ranges.nodes, place.len());
            let narrower = intersection(ranges.nodes[critical as usize], self.monotone_range(critical, place, &slopes));
            if narrower == ranges.nodes[critical as usize] || known.iter().any(|(node, _)| *node == critical) {
                let influence = |i: usize| place[i].width() * slopes[i].magnitude().clamp(1e-300, f64::MAX);
                let entry = (0..place.len()).max_by(|&i, &j| influence(i).total_cmp(&influence(j)).then(j.cmp(&i)));
                return Fate::Split(entry.expect("at least one entry"), self.words(node, trouble.wrong));
            }
            known.push((critical, narrower));
        }
    }

    /// The node whose value decides about trouble at `node`.
    fn critical(&self, node: Index, trouble: Trouble) -> Index {
        match self.tape.nodes[node as usize] {
            _ if trouble.wrong == Wrong::Overflow => node,
            Node::Binary(Binary::Div, _, b) => b,
            Node::Unary(_, a) | Node::Binary(_, a, _) | Node::Power(a, _) => a,
            _ => node,
        }
    }

    /// An enclosure of a node from the ends of the entries that it is monotone in.
    fn monotone_range(&self, node: Index, place: &[Interval], derivatives: &[Interval]) -> Interval {
        let end = |i: usize, upper: bool| {
            let (x, slope) = (place[i], derivatives[i]);
            match (slope.lo() >= 0.0, slope.hi() <= 0.0) {
                (true, _) => Interval::point(if upper { x.hi() } else { x.lo() }),
                (_, true) => Interval::point(if upper { x.lo() } else { x.hi() }),
                _ => x,
            }
        };
        let at = |upper: bool| self.tape.ranges(|i| end(i, upper)).nodes[node as usize];
        let (low, high) = (at(false), at(true));
        Interval::new(low.lo(), high.hi().max(low.lo()))
    }

    /// A point of the box where the function is certainly undefined.
    fn witness(&self, place: &[Interval], node: Index, trouble: Trouble) -> Option<(Vec<f64>, String)> {
        let probes = probes(place);
        for point in &probes {
            let ranges = self.tape.ranges(|i| Interval::point(point[i]));
            if let Some((node, Trouble { wrong, certain: true })) = ranges.trouble {
                let value = ranges.nodes[self.critical(node, Trouble { wrong, certain: true }) as usize];
                return Some((point.clone(), self.words_at(node, wrong, value)));
            }
        }
        if !matches!(trouble.wrong, Wrong::DivisionByZero | Wrong::Pole) {
            return None;
        }
        let sign = |point: &[f64]| self.sign(node, trouble, |i| Interval::point(point[i]));
        let negative = probes.iter().find(|point| sign(point) == Some(-1))?;
        let positive = probes.iter().find(|point| sign(point) == Some(1))?;
        self.between(node, trouble, negative.clone(), positive.clone())
    }

    /// The sign of what must not be 0, where it is certain.
    fn sign(&self, node: Index, trouble: Trouble, entry: impl Fn(usize) -> Interval) -> Option<i32> {
        let argument = self.tape.ranges(entry).nodes[self.critical(node, trouble) as usize];
        let x = if trouble.wrong == Wrong::Pole { elementary::unary(Unary::Cos, argument) } else { argument };
        if x.hi() < 0.0 {
            Some(-1)
        } else if x.lo() > 0.0 {
            Some(1)
        } else {
            None
        }
    }

    /// A continuous function that changes its sign between two points has a zero between them.
    fn between(
        &self,
        node: Index,
        trouble: Trouble,
        mut negative: Vec<f64>,
        mut positive: Vec<f64>,
    ) -> Option<(Vec<f64>, String)> {
        for _ in 0..60 {
            let middle: Vec<f64> = negative.iter().zip(&positive).map(|(a, b)| f64::midpoint(*a, *b)).collect();
            match self.sign(node, trouble, |i| Interval::point(middle[i])) {
                Some(-1) if middle != negative => negative = middle,
                Some(1) if middle != positive => positive = middle,
                _ => break,
            }
        }
        let hull = |i: usize| Interval::new(negative[i].min(positive[i]), negative[i].max(positive[i]));
        let critical = self.critical(node, trouble);
        let ranges = self.tape.ranges(hull);
        let jumps = |(index, node): (usize, &Node)| {
            let jump = matches!(node, Node::Unary(Unary::Sign | Unary::Instruction, _));
            jump && ranges.nodes[index].lo() < ranges.nodes[index].hi()
        };
        let continuous = ranges.trouble.is_none_or(|(first, _)| first > critical)
            && !self.tape.nodes[..=critical as usize].iter().enumerate().any(jumps);
        let what = format!("{} on the way from there to {:?}", self.words(node, trouble.wrong), positive);
        continuous.then_some((negative, what))
    }

    /// The text that a node comes from.
    fn text(&self, node: Index) -> &str {
        let expression = &self.program.expression;
        &expression.text[expression.codes[self.output].spans[self.tape.origins[node as usize]].clone()]
    }

    /// What is wrong at a node.
    fn words(&self, node: Index, wrong: Wrong) -> String {
        let critical = self.text(self.critical(node, Trouble { wrong, certain: false }));
        match wrong {
            Wrong::DivisionByZero => format!("division by zero: {critical} passes 0"),
            Wrong::Logarithm => format!("the logarithm of {critical}, which must be positive"),
            Wrong::Root => format!("the square root of {critical}, which must not be negative"),
            Wrong::NegativeBase => format!("a real power of {critical}, which must not be negative"),
            Wrong::Pole => format!("a pole of the tangent: {critical} passes an odd multiple of pi/2"),
            Wrong::Overflow => format!("{critical} is not finite"),
        }
    }

    /// What is wrong at a node, and the value that shows it.
    fn words_at(&self, node: Index, wrong: Wrong, value: Interval) -> String {
        let critical = self.text(self.critical(node, Trouble { wrong, certain: true }));
        let value = value.center();
        match wrong {
            Wrong::DivisionByZero => format!("division by zero: {critical} is 0"),
            Wrong::Logarithm => format!("the logarithm of {critical}, which is {value}"),
            Wrong::Root => format!("the square root of {critical}, which is {value}"),
            Wrong::NegativeBase => format!("a real power of {critical}, which is {value}"),
            Wrong::Pole | Wrong::Overflow => format!("{critical} is not finite"),
        }
    }
}

/// Points of a box that are worth a look: its center, ends, and a corner next to each end.
fn probes(place: &[Interval]) -> Vec<Vec<f64>> {
    let ends = [|x: &Interval| x.lo(), |x: &Interval| x.hi()];
    let mut probes = vec![place.iter().map(|x| x.center()).collect()];
    for (end, other) in [(ends[0], ends[1]), (ends[1], ends[0])] {
        let corner: Vec<f64> = place.iter().map(end).collect();
        if place.len() > 1 {
            probes.extend((0..place.len()).map(|i| {
                let mut corner = corner.clone();
                corner[i] = other(&place[i]);
                corner
            }));
        }
        probes.push(corner);
    }
    probes
}

/// A box cut in two.
fn halves(place: &[Interval], entry: usize) -> [Vec<Interval>; 2] {
    let middle = place[entry].center();
    let mut parts = [place.to_vec(), place.to_vec()];
    parts[0][entry] = Interval::new(place[entry].lo(), middle);
    parts[1][entry] = Interval::new(middle, place[entry].hi());
    parts
}
