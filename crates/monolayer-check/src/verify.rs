//! The checker's one verb: read the files, decide every token, check every claim.

use std::path::Path;
use std::time::Instant;

use crate::certificate::{self, Certificate, Claim as Claimed};
use crate::context;
use crate::dataset::{self, Dataset, Format, Labels};
use crate::decide::Decision;
use crate::distance;
use crate::error::{Error, Result};
use crate::labels::{COMFORTABLE, Outcome, Pass};
use crate::mapping;
use crate::model::{self, Hashes, Model, Stored};
use crate::numbers::Numbers;
use crate::rank;
use crate::report::{Claim, Finding, Report, Verdict};
use crate::rounding::Precision;

/// How to check.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The arithmetic; by default the model's own.
    pub precision: Option<Precision>,
    /// Impossible tokens count like all others.
    pub strict: bool,
    /// Stop at the first refutation.
    pub first: bool,
    /// The kind of the dataset file; by default by its ending.
    pub format: Option<Format>,
    /// How near vector outputs must be, in every coordinate; by default what the certificate claims.
    pub tolerance: Option<f64>,
    /// Leave the certificate aside and check the model alone.
    pub ignore_certificate: bool,
    /// Bits up to which real arithmetic escalates.
    pub bits: usize,
    /// How many findings of each kind to write out.
    pub findings: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            precision: None,
            strict: false,
            first: false,
            format: None,
            tolerance: None,
            ignore_certificate: false,
            bits: 8192,
            findings: 20,
        }
    }
}

/// The error of exp that every verdict covers, in units in the last place.
pub const EXP_ULP: f64 = 4.0;

/// Checks a model directory, against a dataset if there is one. Files that cannot be read give the verdict "error".
pub fn verify(dir: &Path, data: Option<&str>, options: &Options) -> Report {
    let start = Instant::now();
    let mut report = match check(dir, data, options) {
        Ok(report) => report,
        Err(error) => {
            let shown = format!("{}; {}", error.what, error.help);
            Report { verdict: Verdict::Error, error: Some((shown, error.place)), ..Report::new() }
        }
    };
    report.seconds = start.elapsed().as_secs_f64();
    report
}

fn check(dir: &Path, data: Option<&str>, options: &Options) -> Result<Report> {
    match model::read(dir)? {
        (Stored::Floats(model), hashes) => check_model(&model, &hashes, dir, data, options),
        (Stored::Exact(model), hashes) => check_model(&model, &hashes, dir, data, options),
    }
}

fn check_model<T: Numbers>(
    model: &Model<T>,
    hashes: &Hashes,
    dir: &Path,
    data: Option<&str>,
    options: &Options,
) -> Result<Report> {
    let certificate = if options.ignore_certificate { None } else { certificate::open(dir)? };
    let dataset = data.map(|name| dataset::open(name, options.format)).transpose()?;
    let precision = options.precision.unwrap_or(T::own(model));
    let mut report = Report::new();
    let claimed = certificate.as_ref().map_or(&[][..], |c| &c.claims);
    let mut check =
        Check { claimed, model, dataset: dataset.as_ref(), options, exp_ulp: EXP_ULP, skip: vec![], passes: vec![] };
    if let Some(certificate) = &certificate {
        check.exp_ulp = certificate.exp_ulp.unwrap_or(EXP_ULP).max(EXP_ULP);
    }
    if let Some(dataset) = &dataset {
        report.warnings.clone_from(&dataset.warnings);
        report.tokens = dataset.tokens();
        report.sequences = dataset.sequences();
        let contexts = context::contexts(dataset, model.positions.is_some(), model.causal());
        let impossible = context::impossible(&contexts, &dataset.labels);
        report.impossible = impossible.iter().filter(|x| **x).count();
        check.skip = if options.strict { vec![false; impossible.len()] } else { impossible.clone() };
        let tolerance = options.tolerance.or_else(|| claimed_tolerance(certificate.as_ref(), precision));
        if mapping_only(certificate.as_ref(), dataset, model, tolerance) {
            report
                .warnings
                .push("the model gives no labels of the dataset: only claims about contexts are checked".into());
        } else {
            report.precision = precision.name().into();
            let at = check.pass(precision, tolerance)?;
            fill(&mut report, dataset, model, &check.passes[at].2, &impossible, options);
        }
    } else if certificate.is_none() {
        let help = "give a dataset, or a directory with a certificate.json";
        return Err(Error::new(dir.display().to_string(), "no dataset and no certificate: nothing to verify", help));
    }
    let stopped = options.first && report.verdict == Verdict::Refuted;
    if let Some(certificate) = certificate.as_ref().filter(|_| !stopped) {
        report.claims = check.claims(certificate, hashes, &report)?;
        report.verdict = report.claims.iter().fold(report.verdict, |verdict, claim| verdict.and(claim.verdict));
    }
    Ok(report)
}

/// Whether a dataset is there only for claims about contexts: it has no labels, or the model is attention that gives none.
fn mapping_only<T>(
    certificate: Option<&Certificate>,
    dataset: &Dataset,
    model: &Model<T>,
    tolerance: Option<f64>,
) -> bool {
    let mapping = |claim: &Claimed| matches!(claim, Claimed::ContextualMapping { .. });
    let unanswered = match dataset.labels {
        Labels::None => true,
        Labels::Classes(..) => model.head.is_none(),
        Labels::Vectors(..) => model.head.is_none() && tolerance.is_none(),
    };
    unanswered && certificate.is_some_and(|c| c.claims.iter().any(mapping))
}

fn claimed_tolerance(certificate: Option<&Certificate>, precision: Precision) -> Option<f64> {
    certificate?.claims.iter().find_map(|claim| match claim {
        Claimed::Outputs { arithmetic, tolerance } if *arithmetic == precision => Some(*tolerance),
        _ => None,
    })
}

/// Writes the outcome of a pass into the report.
fn fill<T>(
    report: &mut Report,
    dataset: &Dataset,
    model: &Model<T>,
    outcome: &Outcome,
    impossible: &[bool],
    options: &Options,
) {
    let labels = model.head.as_ref().map(|head| head.labels.as_slice());
    for (t, decision) in outcome.decisions.iter().enumerate() {
        let counts = options.strict || !impossible[t];
        let what = match decision {
            None => {
                report.unchecked += usize::from(counts);
                continue;
            }
            Some(Decision::Right(_)) => "holds".to_owned(),
            Some(Decision::Wrong(failure)) => failure.shown(labels, &wanted(dataset, t)),
            Some(Decision::Open(margin, _)) if margin.is_nan() => {
                format!("not decided with {} bits: more may decide it", options.bits)
            }
            Some(Decision::Open(margin, error)) => {
                format!("margin {margin:.6e}, error bound {error:.6e}: {}", advice(report, *margin, *error))
            }
        };
        let (list, count) = match decision {
            _ if !counts => (&mut report.impossible_tokens, None),
            Some(Decision::Wrong(_)) => (&mut report.counterexamples, Some(&mut report.refuted)),
            Some(Decision::Open(..)) => (&mut report.open, Some(&mut report.unknown)),
            _ => {
                report.verified += 1;
                continue;
            }
        };
        if let Some(count) = count {
            *count += 1;
        }
        if list.len() < options.findings {
            let (position, place, text) = (dataset.locate(t), dataset.place(t), dataset.shown(t));
            list.push(Finding { token: t, position, place, text, what });
        }
    }
    report.smallest_margin_ratio = Some(outcome.smallest_ratio).filter(|ratio| ratio.is_finite());
    report.verdict = match (report.refuted, report.unknown + report.unchecked) {
        (0, 0) => Verdict::Verified,
        (0, _) => Verdict::Unknown,
        _ => Verdict::Refuted,
    };
}

/// What precision would decide an open token.
fn advice(report: &Report, margin: f64, error: f64) -> &'static str {
    match report.precision.as_str() {
        "real" => "more bits may decide it",
        _ if error.is_infinite() => "a sum may overflow; real arithmetic may decide it",
        _ if margin == 0.0 => "a tie to the last bit; real arithmetic may decide it",
        "f32" => "f64 or real arithmetic may decide it",
        _ => "real arithmetic may decide it",
    }
}

fn wanted(dataset: &Dataset, t: usize) -> String {
    match &dataset.labels {
        Labels::Classes(ids, names) => names[ids[t] as usize].clone(),
        _ => String::new(),
    }
}

struct Check<'a, T> {
    claimed: &'a [Claimed],
    model: &'a Model<T>,
    dataset: Option<&'a Dataset>,
    options: &'a Options,
    exp_ulp: f64,
    /// Tokens that do not count.
    skip: Vec<bool>,
    /// Passes already made: arithmetic, tolerance, outcome.
    passes: Vec<(Precision, Option<f64>, Outcome)>,
}

impl<T: Numbers> Check<'_, T> {
    /// The index of the pass in this arithmetic, which is made if it was not.
    fn pass(&mut self, precision: Precision, tolerance: Option<f64>) -> Result<usize> {
        if let Some(at) = self.passes.iter().position(|(p, t, _)| *p == precision && *t == tolerance) {
            return Ok(at);
        }
        let dataset = self.dataset.expect("a pass has data");
        let (first, bits, exp_ulp) = (self.options.first, self.options.bits, self.exp_ulp);
        let comfortable = self.claimed_margin(precision).max(COMFORTABLE);
        let pass = Pass {
            model: self.model,
            dataset,
            precision,
            exp_ulp,
            tolerance,
            skip: &self.skip,
            first,
            bits,
            comfortable,
        };
        self.passes.push((precision, tolerance, T::pass(&pass)?));
        Ok(self.passes.len() - 1)
    }

    /// The margin ratio that the certificate claims in an arithmetic: tokens with less are looked at carefully.
    fn claimed_margin(&self, precision: Precision) -> f64 {
        let ratio = |claim: &Claimed| match claim {
            Claimed::Labels { arithmetic, smallest_margin_ratio, .. } if *arithmetic == precision => {
                *smallest_margin_ratio
            }
            _ => None,
        };
        self.claimed.iter().filter_map(ratio).fold(0.0, f64::max)
    }

    fn claims(&mut self, certificate: &Certificate, hashes: &Hashes, report: &Report) -> Result<Vec<Claim>> {
        let mut claims = vec![identity(certificate, hashes)];
        if let Some(dataset) = self.dataset {
            claims.push(same_data(certificate, dataset, report.impossible));
        }
        for claim in &certificate.claims {
            if self.dataset.is_none()
                && !matches!(claim, Claimed::Rank { .. } | Claimed::Distance(_) | Claimed::Other { .. })
            {
                continue;
            }
            claims.push(self.claim(claim)?);
        }
        Ok(claims)
    }

    fn claim(&mut self, claim: &Claimed) -> Result<Claim> {
        let done = |kind: &str, (verdict, why)| Ok(Claim { kind: kind.into(), verdict, why, bound: None });
        match claim {
            Claimed::Labels { arithmetic, .. } | Claimed::Outputs { arithmetic, .. }
                if T::floats(self.model).is_none() && *arithmetic != Precision::Real =>
            {
                let why = format!("exact numbers are not run in {}", arithmetic.name());
                done(
                    if matches!(claim, Claimed::Labels { .. }) { "labels" } else { "outputs" },
                    (Verdict::Unknown, why),
                )
            }
            Claimed::Labels { arithmetic, right, smallest_margin_ratio } => {
                let at = self.pass(*arithmetic, self.tolerance())?;
                let found = self.count_right(at, *right);
                let margin = margin_holds(*smallest_margin_ratio, self.passes[at].2.smallest_ratio);
                done("labels", (found.0.and(margin.0), format!("{}{}", found.1, margin.1)))
            }
            Claimed::Outputs { arithmetic, tolerance } => {
                let at = self.pass(*arithmetic, Some(*tolerance))?;
                let all = self.skip.iter().filter(|skip| !**skip).count();
                done("outputs", self.count_right(at, all))
            }
            Claimed::Rank { tensor, rank } => {
                done("rank", T::floats(self.model).map_or_else(only_floats, |model| rank::check(model, tensor, *rank)))
            }
            Claimed::ContextualMapping { layer, log2_r, log2_delta } => {
                let dataset = self.dataset.expect("claims about data are checked with data");
                let found = T::floats(self.model).map_or_else(
                    || Ok(only_floats()),
                    |model| mapping::check(model, dataset, *layer, (*log2_r, *log2_delta), self.options.bits),
                );
                done("contextual-mapping", found?)
            }
            Claimed::Distance(claim) => {
                let Some(model) = T::floats(self.model) else { return done("distance", only_floats()) };
                let distance::Found { verdict, why, bound } = distance::check(model, claim, self.exp_ulp);
                Ok(Claim { kind: "distance".into(), verdict, why, bound })
            }
            Claimed::Other { kind, why } => done(kind, (Verdict::Unknown, why.clone())),
        }
    }

    fn tolerance(&self) -> Option<f64> {
        self.passes.first().and_then(|(_, tolerance, _)| *tolerance)
    }

    /// Whether at least `claimed` tokens hold in a pass (impossible ones that happen to hold included).
    fn count_right(&self, at: usize, claimed: usize) -> (Verdict, String) {
        let (precision, _, outcome) = &self.passes[at];
        let count = |test: fn(&Decision) -> bool| outcome.decisions.iter().flatten().filter(|d| test(d)).count();
        let right = count(|d| matches!(d, Decision::Right(_)));
        let wrong = count(|d| matches!(d, Decision::Wrong(_)));
        let verdict = if right >= claimed {
            Verdict::Verified
        } else if outcome.decisions.len() - wrong < claimed {
            Verdict::Refuted
        } else {
            Verdict::Unknown
        };
        (verdict, format!("claims {claimed} tokens in {}, {right} are verified and {wrong} refuted", precision.name()))
    }
}

/// What is said of claims that are not checked of exact numbers.
fn only_floats() -> (Verdict, String) {
    (Verdict::Unknown, "this checker decides such claims for f32 and f64 models only".into())
}

/// A claimed margin is only as good as the one found; a larger one may be true of a sharper bound, so it is not refuted.
fn margin_holds(claimed: Option<f64>, found: f64) -> (Verdict, String) {
    match claimed {
        Some(claimed) if claimed > found * (1.0 + 1e-6) => {
            (Verdict::Unknown, format!("; claims a smallest margin ratio of {claimed}, but {found:.6} was found"))
        }
        _ => (Verdict::Verified, String::new()),
    }
}

/// The certificate speaks of these very files.
fn identity(certificate: &Certificate, hashes: &Hashes) -> Claim {
    let found = [Some(&hashes.config), Some(&hashes.tensors), hashes.vocabulary.as_ref()];
    let names = ["config.json", hashes.numbers_file, "vocabulary.json"];
    let other: Vec<&str> = names
        .into_iter()
        .zip(found)
        .zip(&certificate.model)
        .filter(|((_, f), c)| *f != c.as_ref())
        .map(|((n, _), _)| n)
        .collect();
    let (verdict, why) = if other.is_empty() {
        (Verdict::Verified, "the certificate's hashes are those of the model's files".to_owned())
    } else {
        (Verdict::Refuted, format!("the certificate was made for another {}", other.join(", ")))
    };
    Claim { kind: "model".into(), verdict, why, bound: None }
}

/// The certificate speaks of this very dataset.
fn same_data(certificate: &Certificate, dataset: &Dataset, impossible: usize) -> Claim {
    let found = [dataset.tokens(), dataset.sequences(), impossible];
    let names = ["tokens", "sequences", "impossible tokens"];
    let (verdict, why) = if certificate.data.as_deref() != Some(dataset.hash.as_str()) {
        (Verdict::Refuted, "the certificate was made for another dataset (its hash differs)".to_owned())
    } else if let Some(i) = (0..3).find(|&i| certificate.counts[i].is_some_and(|claimed| claimed != found[i])) {
        let claimed = certificate.counts[i].unwrap_or(0);
        (Verdict::Refuted, format!("it claims {claimed} {}, the dataset has {}", names[i], found[i]))
    } else {
        (Verdict::Verified, "the certificate's hash and counts are those of the dataset".to_owned())
    };
    Claim { kind: "data".into(), verdict, why, bound: None }
}
