//! Contexts whose label is not their word's base label, in halfspaces over words, places and ids.
//!
//! The contexts of a word at a place are runs of equal labels along the id. One run has the base label, or is made the first
//! to be given another one; from there outward each run is one *layer* above the last. A unit of a layer holds runs
//! of that layer with its label, and whatever lies in layers above it, where stronger units speak; it holds nothing with
//! another label in its own layer or below. Along the ids of one word at one place a halfspace is one-sided, and that is all a
//! run needs: what lies beyond it is above it. So a run costs a place in one halfspace, which has room for many runs of many
//! words. Runs that no halfspace tells from others, and words at places with too many layers, are left to hinges.

use super::code_points::{CodePoints, Codes, IdScale};
use super::halfspace_cover::{CoverEffort, Halfspace, Target, cover};
use super::label_hinges::{self, MostRuns, Run};
use super::{DEFAULT_STRENGTH, Unit, WordGroup};
use crate::arithmetic::matrix::Matrix;
use crate::arithmetic::parallel;
use crate::arithmetic::sorting;

/// The highest layer; base labels are layer 1. Strengths grow from layer to layer.
const MOST_LAYERS: usize = 8;
/// The strongest output of a unit: what is stronger could leave the range of single precision.
const STRONGEST: f64 = (1_u128 << 90) as f64;
/// Coordinates of ids that are nearer to each other than this are left to hinges: their weight would drown the codes.
const NARROW: f64 = 1.0 / 2048.0;
/// How often runs that no halfspace holds may be given to hinges before all of them are.
const ROUNDS: usize = 4;

/// What exceptions are told apart by, and what they have to win against.
pub(super) struct Exceptions<'a> {
    pub groups: &'a [WordGroup],
    pub words: &'a Codes,
    pub places: Option<&'a Codes>,
    /// The base label of each word, and how strongly it is given.
    pub base: &'a [u32],
    pub strength: &'a [f64],
    pub default: u32,
    pub label_codes: &'a Matrix<f64>,
    pub ids: IdScale,
    /// The lowest and the highest id there is.
    pub id_range: (f64, f64),
    /// Whether units must be off for the code 0, too.
    pub unknown: bool,
    pub effort: CoverEffort,
}

/// The units for exceptions, and the groups that hinges must do.
pub(super) struct ExceptionUnits {
    pub units: Vec<Unit>,
    pub hinged: Vec<usize>,
}

/// The layers of a group: `first` at run `start`, and one more with each run outward.
#[derive(Clone, Copy)]
struct GroupLayers {
    start: usize,
    first: usize,
}

impl GroupLayers {
    fn new(runs: &[Run], base: u32) -> Self {
        let from_middle = |&i: &usize| (2 * i + 1).abs_diff(runs.len());
        let with_base = (0..runs.len()).filter(|&i| runs[i].label == base).min_by_key(from_middle);
        with_base.map_or(Self { start: runs.len() / 2, first: 2 }, |start| Self { start, first: 1 })
    }

    fn of(&self, run: usize) -> usize {
        self.first + run.abs_diff(self.start)
    }

    fn deepest(&self, runs: &[Run]) -> usize {
        self.of(0).max(self.of(runs.len() - 1))
    }
}

/// The runs of one label in one layer, each with its group.
struct LayerTargets {
    layer: usize,
    label: u32,
    targets: Vec<Target>,
}

/// A unit with the strength it gives to its label, per unit of what it computes.
struct LayerUnit {
    unit: Unit,
    label: u32,
    strength: f64,
}

/// The numbers of what is marked.
fn marked(marks: &[bool]) -> Vec<usize> {
    (0..marks.len()).filter(|&i| marks[i]).collect()
}

impl Exceptions<'_> {
    /// Units for all exceptions that halfspaces can hold.
    pub fn units(&self) -> ExceptionUnits {
        let layers: Vec<GroupLayers> =
            self.groups.iter().map(|g| GroupLayers::new(&g.runs, self.base[g.word as usize])).collect();
        let exceptional = |g: usize| layers[g].deepest(&self.groups[g].runs) > 1;
        let deep = |g: usize| layers[g].deepest(&self.groups[g].runs) > MOST_LAYERS;
        let gap = |pair: &[Run]| self.ids.at(pair[1].first) - self.ids.at(pair[0].last);
        // What is not a number is not wide, either.
        let wide = |g: usize| self.groups[g].runs.windows(2).all(|pair| gap(pair) > NARROW);
        let mut hinged: Vec<bool> = (0..self.groups.len()).map(|g| deep(g) || !wide(g)).collect();
        for round in 0.. {
            let jobs = self.jobs(&layers, &hinged);
            let found = parallel::map_slice(&jobs, |job| self.cover(job, &layers, &hinged));
            let failed = || jobs.iter().zip(&found).flat_map(|(job, (_, f))| f.iter().map(|&t| job.targets[t].point));
            if failed().next().is_none() {
                match self.strong_units(&jobs, &found) {
                    Ok(units) => return ExceptionUnits { units, hinged: marked(&hinged) },
                    Err(layer) => (0..self.groups.len())
                        .filter(|&g| layers[g].deepest(&self.groups[g].runs) >= layer)
                        .for_each(|g| hinged[g] = true),
                }
            }
            // What was found may hold contexts that are now hinges' business: again, without them.
            failed().for_each(|g| hinged[g] = true);
            if round == ROUNDS {
                (0..self.groups.len()).filter(|&g| exceptional(g)).for_each(|g| hinged[g] = true);
            }
        }
        unreachable!("without targets nothing fails")
    }

    /// No units: everything is left to hinges.
    pub fn left_to_hinges(&self) -> ExceptionUnits {
        let exceptional =
            |group: &WordGroup| label_hinges::cost(&group.runs, self.base[group.word as usize], MostRuns::TWO) > 0;
        let hinged: Vec<bool> = self.groups.iter().map(exceptional).collect();
        ExceptionUnits { units: Vec::new(), hinged: marked(&hinged) }
    }

    /// The targets of each label in each layer, the lowest layer first.
    fn jobs(&self, layers: &[GroupLayers], hinged: &[bool]) -> Vec<LayerTargets> {
        let mut jobs: Vec<LayerTargets> = Vec::new();
        let mut targets: Vec<(usize, u32, Target)> = Vec::new();
        for (g, group) in self.groups.iter().enumerate().filter(|&(g, _)| !hinged[g]) {
            for (i, run) in group.runs.iter().enumerate().filter(|&(i, _)| layers[g].of(i) > 1) {
                let ids = (self.ids.at(run.first), self.ids.at(run.last));
                targets.push((layers[g].of(i), run.label, Target { point: g, ids }));
            }
        }
        sorting::sort_by_key(&mut targets, |&(layer, label, _)| (layer, label));
        for (layer, label, target) in targets {
            match jobs.last_mut() {
                Some(job) if (job.layer, job.label) == (layer, label) => job.targets.push(target),
                _ => jobs.push(LayerTargets { layer, label, targets: vec![target] }),
            }
        }
        jobs
    }

    fn cover(&self, job: &LayerTargets, layers: &[GroupLayers], hinged: &[bool]) -> (Vec<Halfspace>, Vec<usize>) {
        let mut list: Vec<(u32, u32)> = self.groups.iter().map(|g| (g.word, g.place as u32)).collect();
        let range = (self.ids.at(self.id_range.0), self.ids.at(self.id_range.1));
        let other = |g: usize, i: usize, run: &Run| run.label != job.label && layers[g].of(i) <= job.layer;
        let hull = |(g, group): (usize, &WordGroup)| {
            let kept = |&(i, run): &(usize, &Run)| hinged[g] || other(g, i, run);
            let mut runs = group.runs.iter().enumerate().filter(kept).map(|(_, run)| run);
            let first = runs.next()?;
            let last = runs.next_back().unwrap_or(first);
            Some((self.ids.at(first.first), self.ids.at(last.last)))
        };
        let mut forbidden: Vec<Option<(f64, f64)>> = self.groups.iter().enumerate().map(hull).collect();
        if self.unknown {
            let places = self.places.map_or(1, Codes::count) as u32;
            list.extend((0..places).map(|k| (self.words.count() as u32, k)));
            forbidden.resize(list.len(), Some(range));
        }
        let reach = range.0.abs().max(range.1.abs());
        let points = CodePoints::new(self.words, self.places, &list).with_ids(self.ids, reach);
        cover(&points, &job.targets, &forbidden, self.effort)
    }

    /// The halfspaces as units, each strong enough for its members, whatever units of lower layers say. The error is a layer
    /// that would have to be too strong.
    fn strong_units(&self, jobs: &[LayerTargets], found: &[(Vec<Halfspace>, Vec<usize>)]) -> Result<Vec<Unit>, usize> {
        let mut done: Vec<LayerUnit> = Vec::new();
        let mut pairs: Vec<(&LayerTargets, &Halfspace)> =
            jobs.iter().zip(found).flat_map(|(job, (list, _))| list.iter().map(move |h| (job, h))).collect();
        sorting::sort_by_key(&mut pairs, |(job, _)| job.layer);
        for layer in pairs.chunk_by(|a, b| a.0.layer == b.0.layer) {
            let unit = |&(job, halfspace): &(&LayerTargets, &Halfspace)| {
                let needed = |&t: &usize| self.needed(&job.targets[t], job.label, &done);
                let needed = halfspace.members.iter().map(needed).fold(0.0, f64::max);
                let strength = (1.25 * (needed + 1.0)).log2().ceil().exp2() / halfspace.margin.log2().floor().exp2();
                LayerUnit { unit: self.unit(halfspace, job.label, strength), label: job.label, strength }
            };
            let units = parallel::map_slice(layer, unit);
            // What is not a number is not below the limit.
            if !units.iter().all(|unit| unit.strength < STRONGEST) {
                return Err(layer[0].0.layer);
            }
            done.extend(units);
        }
        Ok(done.into_iter().map(|unit| unit.unit).collect())
    }

    fn unit(&self, halfspace: &Halfspace, label: u32, strength: f64) -> Unit {
        let output = self.label_codes.row(label as usize).iter().map(|c| strength * c).collect();
        Unit { code: halfspace.normal.clone().into(), id: halfspace.id, bias: -halfspace.threshold, output }
    }

    /// How strongly a label must be given to a target, to be level with every other label there.
    fn needed(&self, target: &Target, label: u32, below: &[LayerUnit]) -> f64 {
        let group = &self.groups[target.point];
        let word = group.word as usize;
        let place = self.places.map_or(&[][..], |places| places.row(group.place));
        let code = [self.words.row(word), place].concat();
        let ids = [target.ids.0, target.ids.1].map(|x| x / self.ids.scale + self.ids.center);
        let mut given = vec![(self.default, DEFAULT_STRENGTH)];
        if self.base[word] != self.default {
            given.push((self.base[word], self.strength[word]));
        }
        for LayerUnit { unit, label, strength } in below {
            let most = ids.map(|id| unit.before(&code, id)).into_iter().fold(0.0, f64::max);
            if most > 0.0 {
                given.push((*label, most * strength));
            }
        }
        let codes = self.label_codes;
        let dot = |a: u32, b: u32| -> f64 {
            codes.row(a as usize).iter().zip(codes.row(b as usize)).map(|(x, y)| x * y).sum()
        };
        let own = dot(label, label);
        let level = |other: u32| {
            let lead = |&(by, strength): &(u32, f64)| (strength * (dot(by, other) - dot(by, label))).max(0.0);
            given.iter().map(lead).sum::<f64>() / (own - dot(label, other))
        };
        (0..codes.rows as u32).filter(|&other| other != label).map(level).fold(0.0, f64::max)
    }
}
