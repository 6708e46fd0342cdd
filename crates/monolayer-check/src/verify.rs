//! The checker's main function: read the files, call the core, report what it found.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use monolayer_core::claims::{Found, Request, check as judge, impossible};
use monolayer_core::exact::real::Rational;
use monolayer_core::model::{Attention, Mask, Model};
use monolayer_core::read::certificate::{self, Certificate, Claim as Claimed};
use monolayer_core::read::directory::{self, Hashes};
use monolayer_core::read::{self, at};
use monolayer_core::rules::judge::Verdict as Judgement;
use monolayer_core::rules::prefixes::LONG;

use crate::against::against;
use crate::convert::within;
use crate::enclosures::About;
use crate::error::{Error, Result};
use crate::open_data::{self, Source};
use crate::options::{Options, Precision};
use crate::report::{Claim, Report, Verdict};
use crate::token_report::TokenReport;
use crate::token_verdict::unfit;

/// Checks a model directory, against a dataset if there is one. Files that cannot be read give the verdict "error".
pub fn verify(dir: &Path, data: Option<&str>, options: &Options) -> Report {
    let open = || data.map(|name| open_data::open(name, options.format, &options.limits)).transpose();
    verify_source(dir, open, options)
}

/// Checks a model directory against a dataset that the caller opens, once the model is read.
pub fn verify_source(dir: &Path, open: impl FnOnce() -> Result<Option<Source>>, options: &Options) -> Report {
    let start = Instant::now();
    let mut report = check(dir, open, options).unwrap_or_else(|error| {
        let shown = format!("{}; {}", error.what, error.help);
        Report { verdict: Verdict::Error, error: Some((shown, error.place)), ..Report::new() }
    });
    report.seconds = start.elapsed().as_secs_f64();
    report
}

fn check(dir: &Path, open: impl FnOnce() -> Result<Option<Source>>, options: &Options) -> Result<Report> {
    let (model, hashes) = directory::open(dir, &options.limits)?;
    // Of two models alone, nothing but their difference is asked.
    let source = open()?;
    let alone = options.against.is_some() && source.is_none() && options.claims.is_none();
    let content = if options.ignore_certificate || alone { None } else { certificate_file(dir, options)? };
    let parsed = content.as_deref().map(|bytes| certificate::parse(bytes, &options.limits)).transpose();
    let certificate = at(dir.join(CERTIFICATE).display(), parsed)?;
    let difference =
        options.against.as_deref().map(|other| against(dir, (&model, &hashes), other, options)).transpose()?;
    if let Some(difference) = difference.clone().filter(|_| alone) {
        return Ok(Report { verdict: difference.verdict, claims: vec![difference], ..Report::new() });
    }
    if source.is_none() && certificate.is_none() {
        let help = "give a dataset, or a directory with a certificate.json";
        return Err(Error::new(dir.display().to_string(), "no dataset and no certificate: nothing to verify", help));
    }
    let (certificate, source) = (certificate.as_ref(), source.as_ref());
    source.map_or(Ok(()), |source| at(&source.name, pairs(&model, source, options)))?;
    let mut report = Case { dir, options, model: &model, hashes: &hashes, certificate, source }.report()?;
    if let Some(difference) = difference {
        report.verdict = report.verdict.and(difference.verdict);
        report.claims.push(difference);
    }
    Ok(report)
}

/// Refuses data with more pairs of tokens than anybody wants to wait for: every head of every layer scores each of them. In a long
/// sequence without positions, whose tokens see the first ones, pairs of different tokens are scored, and sums over all tokens formed,
/// which is quick, for each of them.
fn pairs(model: &Model, source: &Source, options: &Options) -> read::Result<()> {
    let attentions = || model.layers.iter().filter_map(|layer| layer.attention.as_ref());
    let first = |a: &Attention<_>| !a.hard && matches!(a.mask, Mask::None | Mask::Causal | Mask::Prefix(_));
    let single = model.layers.len() == 1 && attentions().all(|a| a.heads * a.size == 1 && first(a));
    let single = single && model.positions.is_none();
    let count = |ends: &[usize]| {
        let all = ends[1] - ends[0];
        let long = single && all >= LONG;
        let distinct = || source.data.tokens[ends[0]..ends[1]].iter().collect::<BTreeSet<_>>().len();
        let distinct = if long { distinct() } else { all };
        let repeated = long && 2 * distinct <= all;
        let others = if repeated { distinct + all / 64 } else { all };
        (if repeated { distinct } else { all }) as u128 * others as u128
    };
    let heads: usize = attentions().map(|a| a.heads).sum();
    let found = source.data.offsets.windows(2).map(count).sum::<u128>() * heads as u128;
    within(found, "pairs of tokens to score", "pairs", options.limits.pairs)
}

/// What was read.
struct Case<'a> {
    dir: &'a Path,
    options: &'a Options<'a>,
    model: &'a Model,
    hashes: &'a Hashes,
    certificate: Option<&'a Certificate<'a>>,
    source: Option<&'a Source>,
}

impl Case<'_> {
    fn report(&self) -> Result<Report> {
        let tolerance = self.options.tolerance.map(tolerance).transpose()?;
        let claims = self.certificate.iter().flat_map(|c| &c.claims);
        let present: Vec<String> = claims.map(|claim| kind(claim).to_owned()).collect();
        let missing = missing(self.dir, self.options.claims.as_deref(), &present, self.certificate.is_some())?;
        let contexts_only = self.options.claims.is_none() && self.contexts_only(&present, tolerance.is_some());
        let kinds = if contexts_only { Some(&present) } else { self.options.claims.as_ref() };
        let (found, tokens) = self.judge(kinds, tolerance)?;
        if let Some(file) = &self.options.witness {
            self.witness(file)?;
        }
        let mut report = self.filled(&found, &tokens);
        if contexts_only {
            report.warnings.push("the model gives no labels of the dataset: only claims are checked".into());
        }
        if !missing.is_empty() {
            report.not_checked.extend(missing);
            report.verdict = report.verdict.and(Verdict::Unknown);
        }
        Ok(report)
    }

    /// Asks the core.
    fn judge(&self, kinds: Option<&Vec<String>>, tolerance: Option<Rational>) -> Result<(Found, TokenReport<'_>)> {
        let progress = Progress::new(self.options);
        let tokens = RefCell::new(TokenReport::new(self.options));
        let request = Request {
            model: self.model,
            hashes: self.hashes,
            certificate: self.certificate,
            data: self.source.map(|source| &source.data),
            arithmetic: self.options.precision.map(Precision::arithmetic),
            tolerance,
            strict: self.options.strict,
            kinds: kinds.map(Vec::as_slice),
            bits: self.options.bits,
            threads: self.options.threads,
            tick: &|tokens, total| progress.add(tokens, total),
            each: &|t, judged, impossible| tokens.borrow_mut().token(t, judged, impossible),
        };
        let unfit = |what: &str| match self.source {
            Some(source) => unfit(self.model, source, what.to_owned()),
            None => Error::new(self.dir.display().to_string(), what, "give data that it can be judged on"),
        };
        let found = judge(&request).map_err(|what| unfit(&what))?;
        if self.source.is_some() && kinds.is_none() && found.pass.is_none() {
            // The tokens were asked about, and the model cannot be run on them.
            let why = found.not_checked.first().map_or("", String::as_str);
            return Err(unfit(why.strip_prefix("labels: ").unwrap_or(why)));
        }
        Ok((found, tokens.into_inner()))
    }

    /// Whether the data is there only for claims about contexts: it has no labels, or the model is attention that gives none.
    fn contexts_only(&self, present: &[String], tolerance: bool) -> bool {
        let claimed = |kind: &str| present.iter().any(|claim| claim == kind);
        let Some(data) = self.source.map(|source| &source.data).filter(|_| claimed(MAPPING)) else { return false };
        match (&data.labels, data.label_values.d) {
            (None, _) => true,
            (Some(_), 0) => self.model.head.as_ref().is_none_or(|head| head.labels.is_none()),
            (Some(_), _) => self.model.head.is_none() && !tolerance && !claimed("outputs"),
        }
    }

    fn witness(&self, file: &Path) -> Result<()> {
        let Some(source) = self.source else {
            return Err(Error::new(file.display().to_string(), "witnesses are about data", "give a dataset"));
        };
        let (precision, threads) = (self.options.precision, self.options.threads);
        let (model, hashes, certificate) = (self.model, self.hashes, self.certificate);
        About { model, hashes, certificate, source, precision, threads }.write(file)
    }

    /// Whether the certificate is about other data, or about none.
    fn other_data(&self) -> bool {
        let pair = self.certificate.zip(self.source);
        pair.is_some_and(|(certificate, source)| certificate.data.as_deref() != Some(source.data.hash.as_str()))
    }

    fn filled(&self, found: &Found, tokens: &TokenReport) -> Report {
        let mut report = Report {
            verdict: verdict(found.verdict),
            claims: found.claims.iter().map(Claim::new).collect(),
            not_checked: found.not_checked.clone(),
            other_data: self.other_data(),
            ..Report::new()
        };
        let Some(source) = self.source else { return report };
        report.warnings.clone_from(&source.warnings);
        (report.tokens, report.sequences, report.free) = (source.tokens(), source.sequences(), source.free());
        let count = |impossible: &[bool]| impossible.iter().filter(|x| **x).count();
        let anew = || count(&impossible(self.model, &source.data, None, self.options.threads));
        report.impossible = found.pass.as_ref().map_or_else(anew, |pass| count(&pass.impossible));
        if let Some(pass) = &found.pass {
            let precision = Precision::of_arithmetic(pass.arithmetic);
            report.precision = precision.name().into();
            tokens.fill(self.model, source, precision, &mut report);
        }
        report
    }
}

const CERTIFICATE: &str = "certificate.json";

/// A claim about what attention tells apart, which needs data but no labels.
const MAPPING: &str = "contextual-mapping";

/// The kinds of claims that a certificate may have.
const KINDS: [&str; 6] = ["labels", "orderings", "outputs", MAPPING, "distance", "rank"];

/// The bytes of a model's certificate, if it has one. A link to nothing is there, and an error.
fn certificate_file(dir: &Path, options: &Options) -> Result<Option<Vec<u8>>> {
    let file = dir.join(CERTIFICATE);
    let there = file.symlink_metadata().is_ok();
    Ok(there.then(|| read::file(&file, "json", options.limits.json)).transpose()?)
}

fn kind(claim: &Claimed) -> &str {
    match claim {
        Claimed::Labels(..) => "labels",
        Claimed::Orderings(..) => "orderings",
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

/// Tells of the progress, a few times a second.
pub(crate) struct Progress<'a, 'b> {
    options: &'a Options<'b>,
    done: AtomicUsize,
    last: Mutex<Instant>,
}

impl<'a, 'b> Progress<'a, 'b> {
    const EVERY: Duration = Duration::from_millis(200);

    pub(crate) fn new(options: &'a Options<'b>) -> Self {
        Self { options, done: AtomicUsize::new(0), last: Mutex::new(Instant::now()) }
    }

    pub(crate) fn add(&self, tokens: usize, total: usize) {
        let Some(tell) = self.options.on_progress else { return };
        let done = self.done.fetch_add(tokens, Ordering::Relaxed) + tokens;
        let Ok(mut last) = self.last.try_lock() else { return };
        // A claim in another arithmetic goes through the tokens again.
        if done > 0 && (last.elapsed() >= Self::EVERY || done.is_multiple_of(total.max(1))) {
            *last = Instant::now();
            tell((done - 1) % total.max(1) + 1, total);
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
