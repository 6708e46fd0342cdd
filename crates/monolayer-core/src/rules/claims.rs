//! What is asked of a model, and the verdict: every token and every claim by itself, nothing taken on trust.

use super::ball::Ball;
use super::context::{contexts, impossible};
use super::inputs::{find, room, wanted};
use super::judge::{Inputs, Judge, Judged, Verdict, Wanted, attended};
use super::mapping;
use super::prepare::Prepared;
use super::sum::Arithmetic;
use crate::exact::distance;
use crate::exact::forward::{Decision, Exact, Wanted as Asked};
use crate::exact::rank;
use crate::exact::real::{Rational, Real};
use crate::model::{Dtype, Mask, Model};
use crate::number::Format;
use crate::read::certificate::{Arithmetic as Named, Certificate, Claim};
use crate::read::data::Data;
use crate::read::directory::Hashes;

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

/// A judgement of all tokens in one arithmetic.
#[derive(Debug, Clone)]
pub struct Pass {
    /// The arithmetic.
    pub arithmetic: Named,
    tolerance: Option<Rational>,
    /// What was found of each token.
    pub tokens: Vec<Judged>,
}

/// Everything that was found.
#[derive(Debug, Clone)]
pub struct Found {
    /// Right where all that was asked was checked and holds; unknown where nothing was asked.
    pub verdict: Verdict,
    /// The tokens, where they were asked about.
    pub pass: Option<Pass>,
    /// Which tokens no weights can get right.
    pub impossible: Vec<bool>,
    /// The claims that were checked.
    pub claims: Vec<Checked>,
    /// What was asked and not checked, and why.
    pub not_checked: Vec<String>,
}

/// Checks everything that is asked. An error says what does not fit together.
pub fn check(request: &Request) -> Result<Found, String> {
    let mut found =
        Found { verdict: Verdict::Unknown, pass: None, impossible: vec![], claims: vec![], not_checked: vec![] };
    let mut asked = Vec::new();
    if let Some(data) = request.data {
        room(request.model, data)?;
        found.impossible = unreachable_labels(request.model, data);
        if request.kinds.is_none() {
            match request.pass(data, request.own(), request.tolerance()) {
                Ok(pass) => {
                    asked.push(request.tokens(&pass, &found.impossible));
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
    let substance = found.pass.is_some() || found.claims.iter().any(|claim| !IDENTITY.contains(&claim.kind.as_str()));
    let complete = found.not_checked.is_empty() || found.pass.is_some();
    found.verdict = match asked.into_iter().reduce(both) {
        Some(Verdict::Right) if !substance || !complete => Verdict::Unknown,
        Some(verdict) => verdict,
        None => Verdict::Unknown,
    };
    Ok(found)
}

/// Claims that the certificate belongs to the files.
const IDENTITY: [&str; 2] = ["model", "data"];

/// A refutation outweighs doubt, and doubt outweighs a proof.
fn both(a: Verdict, b: Verdict) -> Verdict {
    match (a, b) {
        (Verdict::Wrong, _) | (_, Verdict::Wrong) => Verdict::Wrong,
        (Verdict::Right, Verdict::Right) => Verdict::Right,
        _ => Verdict::Unknown,
    }
}

/// Which tokens no weights of this architecture can get right.
fn unreachable_labels(model: &Model, data: &Data) -> Vec<bool> {
    let Some(labels) = &data.labels else { return vec![false; data.tokens.len()] };
    impossible(&all_contexts(model, data, model.layers.len()), labels)
}

/// The contexts of all tokens behind some layers.
pub(super) fn all_contexts(model: &Model, data: &Data, layers: usize) -> Vec<[u8; 32]> {
    let masks = model.layers[..layers].iter().filter_map(|layer| layer.attention.as_ref()).map(|a| &a.mask);
    let masks: Vec<&Mask> = masks.collect();
    // Words are rows of the embedding: unknown ones share a row, and the start token may be a word.
    let names = match &model.vocabulary {
        Some(words) if data.values.d == 0 => {
            let apart = |at: usize| (words.len() + at) as u64;
            let row = |(at, word): (usize, &String)| find(words, word).map_or_else(|_| apart(at), |row| row as u64);
            data.values.names.iter().enumerate().map(row).collect()
        }
        _ => (0..data.different() as u64).collect::<Vec<u64>>(),
    };
    let names: Vec<u64> = names.into_iter().chain(model.start.map(|row| row as u64)).collect();
    contexts(data, &names, model.positions.is_some(), &masks)
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

    /// Judges all tokens in an arithmetic.
    fn pass(&self, data: &Data, named: Named, tolerance: Option<Rational>) -> Result<Pass, String> {
        let arithmetic = self.arithmetic(named);
        let near = tolerance.as_ref().map(|t| Ball::around(&t.enclosure(62)).ok_or("the tolerance is out of range"));
        let near = near.transpose()?;
        let wanted = wanted(self.model, data, near)?;
        let total = wanted.len();
        let tick = |tokens: usize| (self.tick)(tokens, total);
        let mut tokens = vec![Judged::UNKNOWN; total];
        if let Dtype::Float(_) = self.model.dtype {
            let inputs = Inputs::new(self.model, data)?;
            if let Some(prepared) = Prepared::new(self.model, arithmetic) {
                tokens = Judge::new(&prepared, &inputs).judge(&wanted, self.threads, &tick);
            }
        } else if named.is_some() {
            return Err("exact numbers are run in real arithmetic only".into());
        }
        if named.is_none() {
            self.with_more_bits(data, &wanted, tolerance.as_ref(), &mut tokens)?;
        }
        Ok(Pass { arithmetic: named, tolerance, tokens })
    }

    /// Real arithmetic with more bits for the tokens that are still open.
    fn with_more_bits(
        &self,
        data: &Data,
        wanted: &[Wanted],
        tolerance: Option<&Rational>,
        tokens: &mut [Judged],
    ) -> Result<(), String> {
        let exact = Exact::new(self.model).ok_or("the numbers of weights.json take too long to read")?;
        let rows = mapping::rows(self.model, data)?;
        let open: Vec<usize> =
            (0..tokens.len()).filter(|&t| tokens[t].verdict == Verdict::Unknown).take(ESCALATED).collect();
        let one = |at: usize| {
            let (all, position) = mapping::sequence(data, &rows, open[at]);
            match (&wanted[open[at]], tolerance) {
                (Wanted::Label(Some(label)), _) => exact.decide(&all, position, Asked::Label(*label), self.bits, None),
                (Wanted::Label(None), _) => Decision::Wrong(0),
                (Wanted::Near(target, _), Some(tolerance)) => {
                    exact.decide(&all, position, Asked::Near(target, tolerance), self.bits, None)
                }
                _ => Decision::Unknown,
            }
        };
        for (at, decision) in super::parallel::parallel(self.threads, open.len(), one).into_iter().enumerate() {
            let judged = &mut tokens[open[at]];
            match decision {
                Decision::Right => judged.verdict = Verdict::Right,
                Decision::Wrong(rival) => (judged.verdict, judged.rival) = (Verdict::Wrong, rival),
                Decision::Unknown => (),
            }
        }
        Ok(())
    }

    /// The verdict on the tokens of a pass: each of them by itself.
    fn tokens(&self, pass: &Pass, impossible: &[bool]) -> Verdict {
        let counts = pass.tokens.iter().zip(impossible).filter(|(_, impossible)| self.strict || !**impossible);
        counts
            .map(|(judged, _)| judged.verdict)
            .filter(|v| *v != Verdict::Free)
            .reduce(both)
            .unwrap_or(Verdict::Unknown)
    }

    fn claims(&self, certificate: &Certificate, found: &mut Found) {
        let checked = |kind: &str, (verdict, why): (Verdict, String)| Checked { kind: kind.into(), verdict, why };
        found.claims.push(checked("model", self.same_model(certificate)));
        let other = self.data.filter(|data| certificate.data.as_deref() != Some(data.hash.as_str()));
        if let Some(data) = self.data.filter(|_| other.is_none()) {
            found.claims.push(checked("data", same_data(certificate, data, &found.impossible)));
        }
        for claim in &certificate.claims {
            let kind = kind(claim);
            if self.kinds.is_some_and(|kinds| !kinds.iter().any(|asked| asked == kind)) {
                continue;
            }
            let needs_data = matches!(claim, Claim::Labels(..) | Claim::Outputs(..) | Claim::ContextualMapping(..));
            match (needs_data, self.data) {
                (true, None) => found.not_checked.push(format!("{kind}: no data was given")),
                (true, Some(_)) if other.is_some() => {
                    found.not_checked.push(format!("{kind}: the data given is not the certificate's"));
                }
                (_, data) => {
                    let verdict = self.claim(claim, data, found);
                    found.claims.push(checked(kind, verdict));
                }
            }
        }
    }

    fn same_model(&self, certificate: &Certificate) -> (Verdict, String) {
        let names = ["config.json", "the numbers", "vocabulary.json", "the mask"];
        let differs = (0..4).find(|&i| certificate.model[i] != self.hashes[i]);
        match differs {
            Some(i) => (Verdict::Wrong, format!("the certificate is for another model: {} differs", names[i])),
            None => (Verdict::Right, "the certificate is for this model".into()),
        }
    }

    fn claim(&self, claim: &Claim, data: Option<&Data>, found: &Found) -> (Verdict, String) {
        match (claim, data) {
            (Claim::Labels(..), Some(data)) if data.label_values.d > 0 => {
                (Verdict::Unknown, "the data has vectors and no classes".into())
            }
            (Claim::Outputs(..), Some(data)) if data.label_values.d == 0 => {
                (Verdict::Unknown, "the data has no vectors to be near to".into())
            }
            (Claim::Labels(arithmetic, right, ratio), Some(data)) => {
                self.judged(data, *arithmetic, None, found, |pass| labels(pass, *right, ratio.as_ref()))
            }
            (Claim::Outputs(arithmetic, tolerance), Some(data)) => {
                self.judged(data, *arithmetic, Some(tolerance), found, |pass| outputs(pass, &found.impossible))
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
            (Claim::Other(_), _) => (Verdict::Unknown, "not a kind of claim that is known, or a field is wrong".into()),
            (_, None) => (Verdict::Unknown, "no data was given".into()),
        }
    }

    /// What a pass says; the one of the tokens themselves is used again.
    fn judged(
        &self,
        data: &Data,
        arithmetic: Named,
        tolerance: Option<&Rational>,
        found: &Found,
        says: impl Fn(&Pass) -> (Verdict, String),
    ) -> (Verdict, String) {
        let equal = |a: &Rational, b: &Rational| a.minus(b).is_zero();
        let near = |own: &Option<Rational>| match (own, tolerance) {
            (Some(a), Some(b)) => equal(a, b),
            (None, Some(_)) => false,
            (_, None) => true,
        };
        let same = |pass: &&Pass| pass.arithmetic == arithmetic && near(&pass.tolerance);
        if let Some(pass) = found.pass.as_ref().filter(same) {
            return says(pass);
        }
        match self.pass(data, arithmetic, tolerance.cloned()) {
            Ok(pass) => says(&pass),
            Err(why) => (Verdict::Unknown, why),
        }
    }

    /// A distance from a function, in real arithmetic or with the rounding of binary64.
    fn distance(&self, named: Named, claim: distance::Claim) -> (Verdict, String) {
        let prepared = Prepared::new(self.model, self.arithmetic(named));
        let attend = |tokens: &[Vec<Real>], i: usize| {
            let around = |token: &Vec<Real>| token.iter().map(Ball::around).collect::<Option<Vec<_>>>();
            let tokens = tokens.iter().map(around).collect::<Option<Vec<_>>>()?;
            let token = attended(prepared.as_ref()?, &tokens, i)?;
            Some(token.iter().map(|x| x.real()).collect())
        };
        if named == Some(Format::F32) {
            return (Verdict::Unknown, "distances are checked in real arithmetic and in f64".into());
        }
        let (holds, d_p) = distance::check(self.model, claim, named.is_some().then_some(&attend));
        let said =
            Ball::around(&d_p).map_or("d_p was not bounded".into(), |d_p| format!("d_p is within {}", shown(d_p)));
        let verdict = match holds {
            Some(true) => Verdict::Right,
            Some(false) => Verdict::Wrong,
            None => Verdict::Unknown,
        };
        (verdict, said)
    }
}

/// Both ends of a ball, for people: m 2^e.
fn shown(x: Ball) -> String {
    let (low, high, e) = x.ends();
    format!("[{low}, {high}] 2^{e}")
}

/// At most so many tokens go on to more bits.
const ESCALATED: usize = 4096;

fn kind(claim: &Claim) -> &str {
    match claim {
        Claim::Labels(..) => "labels",
        Claim::Outputs(..) => "outputs",
        Claim::ContextualMapping(..) => "contextual-mapping",
        Claim::Distance { .. } => "distance",
        Claim::Rank(..) => "rank",
        Claim::Other(kind) => kind,
    }
}

fn same_data(certificate: &Certificate, data: &Data, impossible: &[bool]) -> (Verdict, String) {
    let free = data.labels.iter().flatten().filter(|label| label.is_none()).count();
    let hopeless = impossible.iter().filter(|x| **x).count();
    let own = [data.tokens.len(), data.offsets.len() - 1, hopeless, free];
    let names = ["tokens", "sequences", "impossible tokens", "free tokens"];
    for i in 0..4 {
        if let Some(claimed) = certificate.counts[i].filter(|claimed| *claimed != own[i]) {
            return (Verdict::Wrong, format!("the certificate says {claimed} {}, there are {}", names[i], own[i]));
        }
    }
    (Verdict::Right, "the certificate is about this data".into())
}

/// So many tokens get their label, with margins of so many error bounds.
fn labels(pass: &Pass, claimed: usize, ratio: Option<&Rational>) -> (Verdict, String) {
    let count = |verdict: Verdict| pass.tokens.iter().filter(|t| t.verdict == verdict).count();
    let (right, unknown) = (count(Verdict::Right), count(Verdict::Unknown));
    let said = format!("claims {claimed} tokens, {right} are verified, {unknown} are unknown");
    if right + unknown < claimed {
        return (Verdict::Wrong, said);
    }
    let ratio = ratio.map(|ratio| Ball::around(&ratio.enclosure(62)).unwrap_or(Ball { m: 1, r: 0, e: 1 << 20 }));
    let meets = |t: &Judged| match (ratio, t.margin) {
        (Some(ratio), Some(margin)) => {
            margin.middle().plus(margin.spread().size().times(ratio).minus()).is_not_negative()
        }
        _ => true,
    };
    let enough = pass.tokens.iter().filter(|t| t.verdict == Verdict::Right && meets(t)).count();
    if right < claimed {
        (Verdict::Unknown, said)
    } else if enough < claimed {
        (Verdict::Unknown, format!("{said}; {enough} with the claimed margin ratio"))
    } else {
        (Verdict::Right, said)
    }
}

/// Every possible token is within the tolerance.
fn outputs(pass: &Pass, impossible: &[bool]) -> (Verdict, String) {
    let counted: Vec<Verdict> =
        pass.tokens.iter().zip(impossible).filter(|(_, impossible)| !**impossible).map(|(t, _)| t.verdict).collect();
    let count = |verdict: Verdict| counted.iter().filter(|v| **v == verdict).count();
    let (right, wrong, unknown) = (count(Verdict::Right), count(Verdict::Wrong), count(Verdict::Unknown));
    let verdict = counted.iter().copied().filter(|v| *v != Verdict::Free).reduce(both).unwrap_or(Verdict::Unknown);
    (verdict, format!("{right} tokens are verified, {wrong} refuted, {unknown} unknown"))
}
