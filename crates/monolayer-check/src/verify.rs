//! The checker's one verb: read the files, ask the core, tell what it found.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use monolayer_core::exact::real::Rational;
use monolayer_core::model::Model;
use monolayer_core::read::certificate::{self, Certificate, Claim as Claimed};
use monolayer_core::read::{self, at, directory};
use monolayer_core::rules::claims::{Found, Request, check as judge};
use monolayer_core::rules::judge::{Judged, Verdict as Judgement};

use crate::error::{Error, Result};
use crate::options::{Options, Precision};
use crate::report::{Claim, Finding, Report, Verdict};
use crate::source::{self, Source};
use crate::tokens::{label_name, middle, radius, ratio, unfit};

/// Checks a model directory, against a dataset if there is one. Files that cannot be read give the verdict "error".
pub fn verify(dir: &Path, data: Option<&str>, options: &Options) -> Report {
    let start = Instant::now();
    let mut report = check(dir, data, options).unwrap_or_else(|error| {
        let shown = format!("{}; {}", error.what, error.help);
        Report { verdict: Verdict::Error, error: Some((shown, error.place)), ..Report::new() }
    });
    report.seconds = start.elapsed().as_secs_f64();
    report
}

fn check(dir: &Path, data: Option<&str>, options: &Options) -> Result<Report> {
    let (model, hashes) = directory::open(dir, &options.limits)?;
    let content = if options.ignore_certificate { None } else { certificate_file(dir, options)? };
    let parsed = content.as_deref().map(|bytes| certificate::parse(bytes, &options.limits)).transpose();
    let certificate = at(dir.join(CERTIFICATE).display(), parsed)?;
    let source = data.map(|name| source::open(name, options.format, &options.limits)).transpose()?;
    if source.is_none() && certificate.is_none() {
        let help = "give a dataset, or a directory with a certificate.json";
        return Err(Error::new(dir.display().to_string(), "no dataset and no certificate: nothing to verify", help));
    }
    let tolerance = options.tolerance.map(tolerance).transpose()?;
    let present: Vec<String> = certificate.iter().flat_map(|c| &c.claims).map(|c| kind(c).to_owned()).collect();
    let contexts_only = options.claims.is_none()
        && source.as_ref().is_some_and(|source| {
            let mapping = present.iter().any(|kind| kind == MAPPING);
            mapping && gives_no_labels(&model, source, tolerance.is_some() || present.iter().any(|k| k == "outputs"))
        });
    let kinds = if contexts_only { Some(&present) } else { options.claims.as_ref() };
    let missing = missing(dir, options.claims.as_deref(), &present, certificate.is_some())?;
    let progress = Progress::new(options);
    let request = Request {
        model: &model,
        hashes: &hashes,
        certificate: certificate.as_ref(),
        data: source.as_ref().map(|source| &source.data),
        arithmetic: options.precision.map(Precision::arithmetic),
        tolerance,
        strict: options.strict,
        kinds: kinds.map(Vec::as_slice),
        bits: options.bits,
        threads: options.threads,
        tick: &|tokens, total| progress.add(tokens, total),
    };
    let fault =
        |what| source.as_ref().map_or(Error::new(dir.display().to_string(), "", ""), |s| unfit(&model, s, what));
    let found = judge(&request).map_err(fault)?;
    if let (Some(source), None, None) = (&source, &found.pass, kinds) {
        // The tokens were asked about, and the model cannot be run on them.
        let why = found.not_checked.first().cloned().unwrap_or_default();
        return Err(unfit(&model, source, why.strip_prefix("labels: ").unwrap_or(&why).to_owned()));
    }
    let mut report = Filled { options, model: &model, source: source.as_ref(), found: &found }.report();
    report.other_data = other_data(certificate.as_ref(), source.as_ref());
    if contexts_only {
        report.warnings.push("the model gives no labels of the dataset: only claims are checked".into());
    }
    if !missing.is_empty() {
        report.not_checked.extend(missing);
        report.verdict = report.verdict.and(Verdict::Unknown);
    }
    Ok(report)
}

const CERTIFICATE: &str = "certificate.json";

/// A claim about what attention tells apart, which needs data but no labels.
const MAPPING: &str = "contextual-mapping";

/// The kinds of claims that a certificate may have.
const KINDS: [&str; 5] = ["labels", "outputs", MAPPING, "distance", "rank"];

/// The bytes of a model's certificate, if it has one. A link to nothing is there, and an error.
fn certificate_file(dir: &Path, options: &Options) -> Result<Option<Vec<u8>>> {
    let file = dir.join(CERTIFICATE);
    let there = file.symlink_metadata().is_ok();
    Ok(there.then(|| read::file(&file, "json", options.limits.json)).transpose()?)
}

fn kind<'a>(claim: &'a Claimed) -> &'a str {
    match claim {
        Claimed::Labels(..) => "labels",
        Claimed::Outputs(..) => "outputs",
        Claimed::ContextualMapping(..) => MAPPING,
        Claimed::Distance { .. } => "distance",
        Claimed::Rank(..) => "rank",
        Claimed::Other(kind) => kind,
    }
}

/// A tolerance as the decimal that it was written as.
fn tolerance(x: f64) -> Result<Rational> {
    let fault = || Error::new("--tolerance", format!("{x} is not a number that can be used"), "give a decimal number");
    Rational::parse(&format!("{x:e}"), &mut 1_000_000).filter(|_| x >= 0.0).ok_or_else(fault)
}

/// What was asked for and is not in the certificate. A kind that does not exist is an error.
fn missing(dir: &Path, asked: Option<&[String]>, present: &[String], certified: bool) -> Result<Vec<String>> {
    let Some(asked) = asked else { return Ok(vec![]) };
    let known = |kind: &&String| KINDS.contains(&kind.as_str()) || present.contains(kind);
    if let Some(unknown) = asked.iter().find(|kind| !known(kind)) {
        let help = format!("they are {}", KINDS.join(", "));
        return Err(Error::new("--claims", format!("there are no claims of kind {unknown:?}"), help));
    }
    if !certified {
        let what = "claims are asked for, and no certificate is read";
        return Err(Error::new(dir.display().to_string(), what, "leave --claims out"));
    }
    let absent = asked.iter().filter(|kind| !present.contains(kind));
    Ok(absent.map(|kind| format!("{kind}: the certificate has no such claim")).collect())
}

/// Whether a dataset is there only for claims about contexts: it has no labels, or the model is attention that gives none.
fn gives_no_labels(model: &Model, source: &Source, tolerance: bool) -> bool {
    match (&source.data.labels, source.data.label_values.d) {
        (None, _) => true,
        (Some(_), 0) => model.head.as_ref().is_none_or(|head| head.labels.is_none()),
        (Some(_), _) => model.head.is_none() && !tolerance,
    }
}

fn other_data(certificate: Option<&Certificate>, source: Option<&Source>) -> bool {
    let pair = certificate.zip(source);
    pair.is_some_and(|(certificate, source)| certificate.data.as_deref() != Some(source.data.hash.as_str()))
}

/// Tells of the progress, a few times a second.
struct Progress<'a, 'b> {
    options: &'a Options<'b>,
    done: AtomicUsize,
    last: Mutex<Instant>,
}

impl<'a, 'b> Progress<'a, 'b> {
    const EVERY: Duration = Duration::from_millis(200);

    fn new(options: &'a Options<'b>) -> Self {
        Self { options, done: AtomicUsize::new(0), last: Mutex::new(Instant::now()) }
    }

    fn add(&self, tokens: usize, total: usize) {
        let Some(tell) = self.options.on_progress else { return };
        let done = self.done.fetch_add(tokens, Ordering::Relaxed) + tokens;
        let Ok(mut last) = self.last.try_lock() else { return };
        // A claim in another arithmetic goes through the tokens again.
        if done > 0 && (last.elapsed() >= Self::EVERY || done % total.max(1) == 0) {
            *last = Instant::now();
            tell((done - 1) % total.max(1) + 1, total);
        }
    }
}

/// What was found, on its way into a report.
struct Filled<'a> {
    options: &'a Options<'a>,
    model: &'a Model,
    source: Option<&'a Source>,
    found: &'a Found,
}

impl Filled<'_> {
    fn report(&self) -> Report {
        let mut report = Report {
            verdict: verdict(self.found.verdict),
            impossible: self.found.impossible.iter().filter(|x| **x).count(),
            claims: self.found.claims.iter().map(Claim::new).collect(),
            not_checked: self.found.not_checked.clone(),
            ..Report::new()
        };
        if let Some(source) = self.source {
            report.warnings.clone_from(&source.warnings);
            (report.tokens, report.sequences, report.free) = (source.tokens(), source.sequences(), source.free());
        }
        if let (Some(source), Some(pass)) = (self.source, &self.found.pass) {
            report.precision = Precision::of_arithmetic(pass.arithmetic).name().into();
            for (t, judged) in pass.tokens.iter().enumerate() {
                self.token(&mut report, source, t, judged);
            }
        }
        report
    }

    /// Counts a token, and writes it out unless it holds.
    fn token(&self, report: &mut Report, source: &Source, t: usize, judged: &Judged) {
        let counts = self.options.strict || !self.found.impossible[t];
        let list = match judged.verdict {
            Judgement::Free => return,
            _ if !counts => &mut report.impossible_tokens,
            Judgement::Right => {
                report.verified += 1;
                let smallest = report.smallest_margin_ratio.unwrap_or(f64::INFINITY);
                report.smallest_margin_ratio =
                    Some(ratio(judged).unwrap_or(smallest).min(smallest)).filter(|x| x.is_finite());
                return;
            }
            Judgement::Wrong => {
                report.refuted += 1;
                &mut report.counterexamples
            }
            Judgement::Unknown => {
                report.unknown += 1;
                &mut report.open
            }
        };
        if list.len() < self.options.findings {
            let what = self.what(source, t, judged, !counts);
            let (position, place, text) = (source.locate(t), source.place(t), source.shown(t));
            let given = judged.given.and_then(|label| label_name(self.model, label)).map(str::to_owned);
            list.push(Finding { token: t, position, place, text, what, given });
        }
    }

    /// What is to be said of a token.
    fn what(&self, source: &Source, t: usize, judged: &Judged, impossible: bool) -> String {
        let wanted = source.label(t).unwrap_or_default();
        let margin = judged.margin.map_or(String::new(), |margin| {
            format!(" (margin {:.6e}, error bound {:.6e})", middle(margin), radius(margin))
        });
        if source.data.label_values.d > 0 {
            let (at, off) = (judged.rival + 1, "within the tolerance");
            return match judged.verdict {
                Judgement::Wrong => format!("coordinate {at} is not {off} of its target{margin}"),
                Judgement::Right => format!("every coordinate is {off} of its target"),
                _ => format!("coordinate {at} may not be {off}{margin}: {}", self.advice(judged)),
            };
        }
        let names = self.model.head.as_ref().and_then(|head| head.labels.as_ref());
        let given = judged.given.or((judged.verdict == Judgement::Wrong).then_some(judged.rival));
        let given = given.and_then(|label| label_name(self.model, label)).unwrap_or("(not known)");
        let unknown_label = names.is_some_and(|names| !names.contains(&wanted));
        match judged.verdict {
            _ if unknown_label => format!("wanted {wanted:?}, which is no label of the model; it gives {given:?}"),
            Judgement::Right => format!("the model gives {wanted:?}, as the data asks here"),
            Judgement::Wrong if judged.given.is_none() => {
                format!("wanted {wanted:?}, but {given:?} scores higher{margin}")
            }
            Judgement::Wrong => format!("wanted {wanted:?}, the model gives {given:?}{margin}"),
            _ if impossible => format!("wanted {wanted:?}, the model seems to give {given:?}{margin}"),
            _ => format!("wanted {wanted:?}{margin}: {}", self.advice(judged)),
        }
    }

    /// What may decide an open token.
    fn advice(&self, judged: &Judged) -> String {
        let arithmetic = self.found.pass.as_ref().map(|pass| Precision::of_arithmetic(pass.arithmetic));
        let wider = if arithmetic == Some(Precision::F32) { "f64 or real arithmetic" } else { "real arithmetic" };
        if arithmetic == Some(Precision::Real) {
            return format!("not decided with {} bits; more may decide it", self.options.bits);
        }
        match judged.margin {
            None => format!("a sum may overflow in some program; {wider} may decide it"),
            Some(_) => format!("{wider} may decide it"),
        }
    }
}

pub(crate) fn verdict(judgement: Judgement) -> Verdict {
    match judgement {
        Judgement::Right => Verdict::Verified,
        Judgement::Wrong => Verdict::Refuted,
        Judgement::Unknown | Judgement::Free => Verdict::Unknown,
    }
}
