//! What is asked of a model, and the verdict: every token and every claim by itself, nothing taken on trust.

pub mod context;
pub mod difference;
pub mod inputs;
pub mod mapping;
pub mod orderings;
mod pass;
pub mod rank;
mod witness;

use std::collections::BTreeMap;

use context::{Context, contexts, disagree};
use inputs::{find, room, wanted};
pub use pass::Pass;
use pass::{Each, Sink, enclosed};

use crate::exact::distance;
use crate::exact::forward::{Decision, Exact, Token, Wanted as Asked};
use crate::exact::real::{Rational, Real};
use crate::model::{Dtype, Mask, Model};
use crate::number::Format;
use crate::parallel::parallel;
use crate::read::certificate::{ARITHMETICS, Arithmetic as Named, Certificate, Claim};
use crate::read::data::Data;
use crate::read::directory::Hashes;
use crate::rules::attention::{Seen, project};
use crate::rules::ball::Ball;
use crate::rules::judge::{Inputs, Judge, Judged, Verdict, Wanted, Wishes};
use crate::rules::network::Network;
use crate::rules::sum::Arithmetic;

/// What is asked, beside the certificate's claims.
pub struct Request<'a> {
    /// The model.
    pub model: &'a Model,
    /// The hashes of its files.
    pub hashes: &'a Hashes,
    /// Its certificate, unless it is left aside.
    pub certificate: Option<&'a Certificate<'a>>,
    /// The data.
    pub data: Option<&'a Data>,
    /// The arithmetic that labels must hold in; by default the model's own.
    pub arithmetic: Option<Named>,
    /// How near outputs must be; by default what the certificate claims.
    pub tolerance: Option<Rational>,
    /// Whether impossible tokens count.
    pub strict: bool,
    /// The kinds of claims to check; by default all.
    pub kinds: Option<&'a [String]>,
    /// Bits up to which real arithmetic goes.
    pub bits: usize,
    /// Threads.
    pub threads: usize,
    /// Told of every token that is judged, with the number of tokens in all.
    pub tick: &'a (dyn Fn(usize, usize) + Sync),
    /// Told what was found of every token that was asked about, and whether it is impossible; in no order.
    pub each: &'a dyn Fn(usize, &Judged, bool),
}

/// A claim and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// Its kind.
    pub kind: String,
    /// Right where it holds, wrong where it is refuted.
    pub verdict: Verdict,
    /// Why.
    pub why: String,
}

/// Everything that was found.
#[derive(Debug, Clone)]
pub struct Found {
    /// Right where all that was asked was checked and holds; unknown where nothing was asked.
    pub verdict: Verdict,
    /// The tokens, where they were asked about.
    pub pass: Option<Pass>,
    /// The claims that were checked.
    pub claims: Vec<Checked>,
    /// What was asked and not checked, and why.
    pub not_checked: Vec<String>,
}

/// Checks everything that is asked. An error says what does not fit together.
pub fn check(request: &Request) -> Result<Found, String> {
    let mut found = Found { verdict: Verdict::Unknown, pass: None, claims: vec![], not_checked: vec![] };
    let mut asked = Vec::new();
    if let Some(data) = request.data {
        room(request.model, data)?;
        if request.kinds.is_none() {
            match request.pass(data, request.own(), request.tolerance(), request.each) {
                Ok(pass) => {
                    asked.push(pass.verdict(request.strict));
                    found.pass = Some(pass);
                }
                Err(why) if request.certificate.is_none() => return Err(why),
                Err(why) => found.not_checked.push(format!("labels: {why}")),
            }
        }
    }
    if let Some(certificate) = request.certificate {
        request.claims(certificate, &mut found);
        asked.extend(found.claims.iter().map(|claim| claim.verdict));
    }
    // Hashes alone are no claim. What was left out is no matter only where the tokens given were judged by themselves.
    let identity = |claim: &&Checked| ["model", "data"].contains(&claim.kind.as_str());
    let substance = found.pass.is_some() || !found.claims.iter().all(|claim| identity(&claim));
    let complete = found.not_checked.is_empty() || found.pass.is_some();
    found.verdict = match all_of(asked.into_iter()) {
        Verdict::Right if !substance || !complete => Verdict::Unknown,
        verdict => verdict,
    };
    Ok(found)
}

/// A refutation outweighs doubt, and doubt outweighs a proof; of nothing, nothing is known.
fn all_of(verdicts: impl Iterator<Item = Verdict>) -> Verdict {
    let both = |a: Verdict, b: Verdict| match (a, b) {
        (Verdict::Wrong, _) | (_, Verdict::Wrong) => Verdict::Wrong,
        (Verdict::Right, Verdict::Right) => Verdict::Right,
        _ => Verdict::Unknown,
    };
    verdicts.filter(|verdict| *verdict != Verdict::Free).reduce(both).unwrap_or(Verdict::Unknown)
}

/// The contexts of all tokens behind some layers.
pub(super) fn all_contexts(model: &Model, data: &Data, layers: usize, threads: usize) -> Vec<Context> {
    let masks = model.layers[..layers].iter().filter_map(|layer| layer.attention.as_ref()).map(|a| &a.mask);
    let masks: Vec<&Mask> = masks.collect();
    // Words are rows of the embedding: unknown ones share a row, and the start token may be a word.
    let names: Vec<u64> = match &model.vocabulary {
        Some(words) if data.values.d == 0 => {
            let row = |(at, word): (usize, &String)| find(words, word).unwrap_or(words.len() + at) as u64;
            data.values.names.iter().enumerate().map(row).collect()
        }
        _ => (0..data.different() as u64).collect(),
    };
    let names: Vec<u64> = names.into_iter().chain(model.start.map(|row| row as u64)).collect();
    contexts(data, &names, model.positions.is_some(), &masks, threads)
}

/// Which tokens no weights of this architecture can get right, together with most tokens of their contexts. Targets that are vectors
/// are compatible where they are at most two tolerances apart.
pub fn impossible(model: &Model, data: &Data, tolerance: Option<Ball>, threads: usize) -> Vec<bool> {
    let mut impossible = vec![false; data.tokens.len()];
    let Some(labels) = &data.labels else { return impossible };
    let (d, entries) = (data.label_values.d, &data.label_values.entries);
    let differ = |a: u32, b: u32| match tolerance {
        Some(near) if a != b => (0..d).any(|c| {
            let [x, y] = [a, b].map(|at| Ball::exact(entries[at as usize * d + c]));
            near.scaled(1).is_below(x.plus(y.minus())) || near.scaled(1).is_below(y.plus(x.minus()))
        }),
        _ => a != b,
    };
    disagree(&all_contexts(model, data, model.layers.len(), threads), labels, |t, own, favored| {
        impossible[t] = differ(own, favored);
    });
    impossible
}

impl Request<'_> {
    /// The model's own arithmetic, or the one asked for.
    fn own(&self) -> Named {
        self.arithmetic.unwrap_or(match self.model.dtype {
            Dtype::Float(format) => Some(format),
            Dtype::Exact => None,
        })
    }

    fn tolerance(&self) -> Option<Rational> {
        let claimed = |claim: &Claim| match claim {
            Claim::Outputs(arithmetic, tolerance) if *arithmetic == self.own() => Some(tolerance.clone()),
            _ => None,
        };
        self.tolerance.clone().or_else(|| self.certificate?.claims.iter().find_map(claimed))
    }

    /// The arithmetic; exp may be off by 4 units in the last place, or by more if the certificate assumes so.
    fn arithmetic(&self, named: Named) -> Arithmetic {
        let assumed = self.certificate.and_then(|c| c.exp_ulp).unwrap_or(0);
        named.map_or(Arithmetic::Real, |format| Arithmetic::Float { format, exp_ulp: assumed.max(4) as u32 })
    }

    /// Judges all tokens in an arithmetic; `each` is told of every one.
    fn pass(&self, data: &Data, named: Named, tolerance: Option<Rational>, each: Each) -> Result<Pass, String> {
        let near = tolerance.as_ref().map(|t| Ball::around(&t.enclosure(62)).ok_or("the tolerance is out of range"));
        let near = near.transpose()?;
        let wanted = wanted(self.model, data, near)?;
        let impossible = impossible(self.model, data, near.filter(|_| data.label_values.d > 0), self.threads);
        let total = data.tokens.len();
        let pass = Pass { arithmetic: named, tolerance, verdicts: vec![], impossible, met: self.ratios(named) };
        let mut sink = Sink { pass, ratios: vec![], open: BTreeMap::new(), wanted: &wanted, each };
        sink.ratios = sink.pass.met.iter().map(|(ratio, _)| enclosed(ratio)).collect();
        sink.pass.verdicts = vec![Verdict::Unknown; total];
        let exact = named.is_none();
        let network = match self.model.dtype {
            Dtype::Float(_) => Some((Inputs::new(self.model, data)?, Network::new(self.model, self.arithmetic(named)))),
            Dtype::Exact if exact => None,
            Dtype::Exact => return Err("exact numbers are run in real arithmetic only".into()),
        };
        let more = if exact { Some(self.more_bits(data)?) } else { None };
        if let Some((inputs, Some(network))) = &network {
            let judge = Judge { network, inputs };
            let tick = |tokens: usize| (self.tick)(tokens, total);
            judge.judge(&wanted, self.threads, &tick, &mut |t, judged| sink.take(t, judged, exact));
        } else {
            (0..total).for_each(|t| sink.take(t, Judged::UNKNOWN, exact));
        }
        if let Some((exact, rows)) = more {
            let open = std::mem::take(&mut sink.open);
            let decided = self.with_more_bits((data, &rows), (&wanted, sink.pass.tolerance.as_ref()), &exact, &open);
            decided.into_iter().for_each(|(t, judged)| sink.settle(t, &judged));
        }
        Ok(sink.pass)
    }

    /// The margin ratios that claims of labels name.
    fn ratios(&self, named: Named) -> Vec<(Rational, usize)> {
        let ratio = |claim: &Claim| match claim {
            Claim::Labels(arithmetic, _, ratio) if *arithmetic == named => ratio.clone().map(|ratio| (ratio, 0)),
            _ => None,
        };
        self.certificate.iter().flat_map(|certificate| &certificate.claims).filter_map(ratio).collect()
    }

    /// The model in real arithmetic, and the tokens' vectors there.
    fn more_bits<'d>(&self, data: &'d Data) -> Result<(Exact<'_>, Vec<Token<'d>>), String> {
        let exact = Exact::new(self.model).ok_or("the numbers of weights.json take too long to read")?;
        Ok((exact, mapping::rows(self.model, data)?))
    }

    /// Decides the tokens that are open with more bits.
    fn with_more_bits(
        &self,
        (data, rows): (&Data, &[Token]),
        (wanted, tolerance): (&Wishes, Option<&Rational>),
        exact: &Exact,
        judged: &BTreeMap<usize, Judged>,
    ) -> Vec<(usize, Judged)> {
        let open: Vec<usize> = judged.keys().copied().collect();
        // The open tokens of a sequence are decided together.
        let sequence = |t: usize| data.offsets.partition_point(|first| *first <= t);
        let groups: Vec<&[usize]> = open.chunk_by(|a, b| sequence(*a) == sequence(*b)).collect();
        let bits = self.bits;
        let one = |at: usize| {
            let (sequence, first) = mapping::sequence(data, rows, groups[at][0]);
            let asked = groups[at].iter().filter_map(|&t| {
                let wanted = match (wanted.of(t), tolerance) {
                    (Wanted::Label(Some(label)), _) => Asked::Label(*label),
                    (Wanted::Near(target, _), Some(tolerance)) => Asked::Near(target, tolerance),
                    _ => return None,
                };
                Some((first + t - groups[at][0], wanted))
            });
            exact.decide(&sequence, &asked.collect::<Vec<_>>(), bits)
        };
        let decisions = parallel(self.threads, groups.len(), one).into_iter().flatten();
        let decided = |((&t, judged), decision): ((&usize, &Judged), Decision)| {
            let mut judged = *judged;
            match decision {
                Decision::Right => judged.verdict = Verdict::Right,
                Decision::Wrong(rival) => (judged.verdict, judged.rival) = (Verdict::Wrong, rival),
                Decision::Unknown => (),
            }
            (t, judged)
        };
        judged.iter().zip(decisions).map(decided).collect()
    }

    fn claims(&self, certificate: &Certificate, found: &mut Found) {
        let checked = |kind: &str, (verdict, why): (Verdict, String)| Checked { kind: kind.into(), verdict, why };
        found.claims.push(checked("model", self.same_model(certificate)));
        let other = self.data.filter(|data| certificate.data.as_deref() != Some(data.hash.as_str()));
        if let Some(data) = self.data.filter(|_| other.is_none()) {
            found.claims.push(checked("data", self.same_data(certificate, data, found.pass.as_ref())));
        }
        for claim in &certificate.claims {
            let kind = kind(claim);
            if self.kinds.is_some_and(|kinds| !kinds.iter().any(|asked| asked == kind)) {
                continue;
            }
            let needs_data = !matches!(claim, Claim::Distance { .. } | Claim::Rank(..) | Claim::Other(_));
            if needs_data && self.data.is_none() {
                found.not_checked.push(format!("{}: no data was given", shown(claim)));
            } else if needs_data && other.is_some() {
                found.not_checked.push(format!("{}: the data given is not the certificate's", shown(claim)));
            } else {
                let verdict = self.claim(claim, found.pass.as_ref());
                found.claims.push(checked(kind, verdict));
            }
        }
    }

    fn same_model(&self, certificate: &Certificate) -> (Verdict, String) {
        let names = ["config.json", "the numbers", "vocabulary.json", "the mask"];
        match (0..4).find(|&i| certificate.model[i] != self.hashes[i]) {
            Some(i) => (Verdict::Wrong, format!("the certificate is for another model: {} differs", names[i])),
            None => (Verdict::Right, "the certificate is for this model".into()),
        }
    }

    fn same_data(&self, certificate: &Certificate, data: &Data, pass: Option<&Pass>) -> (Verdict, String) {
        let free = data.labels.iter().flatten().filter(|label| label.is_none()).count();
        let known = pass.filter(|_| data.label_values.d == 0).map(|pass| pass.impossible.clone());
        let hopeless = known
            .unwrap_or_else(|| impossible(self.model, data, None, self.threads))
            .into_iter()
            .filter(|x| *x)
            .count();
        let own = [data.tokens.len(), data.offsets.len() - 1, hopeless, free];
        let names = ["tokens", "sequences", "impossible tokens", "free tokens"];
        for i in 0..4 {
            if let Some(claimed) = certificate.counts[i].filter(|claimed| *claimed != own[i]) {
                return (Verdict::Wrong, format!("the certificate says {claimed} {}, there are {}", names[i], own[i]));
            }
        }
        (Verdict::Right, "the certificate is about this data".into())
    }

    /// Checks one claim; `pass` is what was found of the tokens, if they were asked about.
    fn claim(&self, claim: &Claim, pass: Option<&Pass>) -> (Verdict, String) {
        let unknown = |why: &str| (Verdict::Unknown, why.to_owned());
        match (claim, self.data) {
            (Claim::Labels(..) | Claim::Orderings(..), Some(data)) if data.label_values.d > 0 => {
                unknown("the data has vectors and no classes")
            }
            (Claim::Outputs(..), Some(data)) if data.label_values.d == 0 => {
                unknown("the data has no vectors to be near to")
            }
            (Claim::Labels(arithmetic, right, ratio), Some(data)) => {
                self.judged(data, *arithmetic, None, pass, |pass| pass.labels(*right, ratio.as_ref()))
            }
            (Claim::Orderings(arithmetic, sequences, lengths), Some(data)) => {
                match orderings::check(self.model, data, (sequences.as_deref(), lengths.as_deref())) {
                    Ok(said) => self.judged(data, *arithmetic, None, pass, |pass| pass.orderings(&said)),
                    Err(verdict) => verdict,
                }
            }
            (Claim::Outputs(arithmetic, tolerance), Some(data)) => {
                self.judged(data, *arithmetic, Some(tolerance), pass, Pass::outputs)
            }
            (Claim::ContextualMapping(layer, log2_r, log2_delta), Some(data)) => {
                mapping::check(self.model, data, *layer, (log2_r, log2_delta), self.bits, self.threads)
            }
            (Claim::Rank(tensor, rank), _) => match rank::check(self.model, tensor, *rank) {
                Some(true) => (Verdict::Right, format!("{tensor} has rank {rank}")),
                Some(false) => (Verdict::Wrong, format!("{tensor} does not have rank {rank}")),
                None => (Verdict::Unknown, format!("the rank of {tensor} was not found")),
            },
            (Claim::Distance { arithmetic, p, bound, function, length }, _) => {
                self.distance(*arithmetic, distance::Claim { p, bound, function, length: *length })
            }
            (Claim::Other(_), _) => unknown("not a kind of claim that is known, or a field is wrong"),
            (_, None) => unknown("no data was given"),
        }
    }

    /// What a pass says; the one of the tokens themselves is used again.
    fn judged(
        &self,
        data: &Data,
        arithmetic: Named,
        tolerance: Option<&Rational>,
        known: Option<&Pass>,
        says: impl Fn(&Pass) -> (Verdict, String),
    ) -> (Verdict, String) {
        let near = |own: &Rational| tolerance.is_none_or(|tolerance| own.minus(tolerance).is_zero());
        let same =
            |pass: &&Pass| pass.arithmetic == arithmetic && pass.tolerance.as_ref().map_or(tolerance.is_none(), near);
        if let Some(pass) = known.filter(same) {
            return says(pass);
        }
        match self.pass(data, arithmetic, tolerance.cloned(), &|_, _, _| ()) {
            Ok(pass) => says(&pass),
            Err(why) => (Verdict::Unknown, why),
        }
    }

    /// A distance from a function, in real arithmetic or with the rounding of binary64.
    fn distance(&self, named: Named, claim: distance::Claim) -> (Verdict, String) {
        let network = Network::new(self.model, self.arithmetic(named));
        let attend = |tokens: &[Vec<Real>], i: usize| {
            let around = |token: &Vec<Real>| token.iter().map(Ball::around).collect::<Option<Vec<_>>>();
            let tokens = tokens.iter().map(around).collect::<Option<Vec<_>>>()?;
            let network = network.as_ref()?;
            let block = network.blocks.iter().find(|block| block.attention.is_some())?;
            let layer = block.attention.as_ref()?;
            let seen = Seen::new(&layer.mask, i, tokens.len(), false);
            let z = project(network.arithmetic, layer, &tokens)?.read(network.arithmetic, layer, i, &seen)?;
            Some(block.skip(network.arithmetic, &tokens[i], &z)?.whole.iter().map(|x| x.real()).collect())
        };
        if named == Some(Format::F32) {
            return (Verdict::Unknown, "distances are checked in real arithmetic and in f64".into());
        }
        let (holds, d_p) = distance::check(self.model, claim, named.is_some().then_some(&attend));
        let said = Ball::around(&d_p).map_or("d_p was not bounded".into(), |d_p| {
            let (low, high, e) = d_p.ends();
            format!("d_p is within [{low}, {high}] 2^{e}")
        });
        (holds.map_or(Verdict::Unknown, |holds| if holds { Verdict::Right } else { Verdict::Wrong }), said)
    }
}

fn kind(claim: &Claim) -> &str {
    match claim {
        Claim::Labels(..) => "labels",
        Claim::Orderings(..) => "orderings",
        Claim::Outputs(..) => "outputs",
        Claim::ContextualMapping(..) => "contextual-mapping",
        Claim::Distance { .. } => "distance",
        Claim::Rank(..) => "rank",
        Claim::Other(kind) => kind,
    }
}

/// The kind of a claim, with its arithmetic if there may be another claim that differs in nothing else.
fn shown(claim: &Claim) -> String {
    let named = match claim {
        Claim::Labels(named, ..) | Claim::Orderings(named, ..) | Claim::Outputs(named, _) => {
            ARITHMETICS.iter().find(|known| known.1 == *named)
        }
        _ => None,
    };
    named.map_or_else(|| kind(claim).into(), |(name, _)| format!("{} in {name} arithmetic", kind(claim)))
}
