//! `monolayer context --scale paper` and `certified`: the weights of Theorem 2, and how far they are from practice.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;
use monolayer::context_map::View;
use monolayer::context_map::float_weights::FloatWeights;
use monolayer::context_map::theorem_weights::weights::Scale;
use monolayer::context_map::theorem_weights::{Certified, Request, Way, certify};
use monolayer::data::context::Agreement;
use monolayer::model::certificate::Claim;
use monolayer::model::mask_file::MaskConfig;
use serde_json::{Value, json};

use super::figure::{self, Row};
use super::report::{Report, bytes, plural, power_of_two};
use super::{Args, Outcome, Prepared, Shared};
use crate::commands::{DOES, WRITES};
use crate::output::{Progress, count, table};

/// The effort of the search for the tight map that stands beside the theorem's.
const TIGHT_CANDIDATES: usize = 40;

/// Options of the scales of the theorem.
#[derive(clap::Args)]
pub struct TheoremArgs {
    /// With --scale paper or certified: how the gaps between ids are proved (default: auto)
    #[arg(long, value_enum, help_heading = DOES)]
    way: Option<WayArg>,
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(64..=1 << 32), help_heading = DOES)]
    #[arg(help = "Largest precision in bits for --way direct (default: 2097152)")]
    max_bits: Option<u64>,
    /// Draw how many bits it takes to tell ids apart, at every scale, for this dataset and three tiny ones
    #[arg(long, value_name = "FILE.svg", help_heading = WRITES)]
    figure: Option<PathBuf>,
}

impl TheoremArgs {
    /// An option that was given.
    pub fn given(&self) -> Option<&'static str> {
        let given = [("--way", self.way.is_some()), ("--max-bits", self.max_bits.is_some())];
        given.into_iter().chain([("--figure", self.figure.is_some())]).find(|option| option.1).map(|option| option.0)
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum WayArg {
    /// Compute the ids with enough bits and subtract them
    Direct,
    /// Bound the logarithms of the differences; double precision is enough
    Identity,
    /// Both where few bits are enough, else identity
    Auto,
}

impl From<WayArg> for Way {
    fn from(way: WayArg) -> Self {
        match way {
            WayArg::Direct => Self::Direct,
            WayArg::Identity => Self::Identity,
            WayArg::Auto => Self::Auto,
        }
    }
}

pub fn run(
    args: &Args,
    shared: &Shared,
    prepared: &Prepared,
    view: &View,
    agreement: Option<&Agreement>,
    scale: Scale,
) -> Result<Outcome> {
    let request = Request {
        scale,
        way: args.theorem.way.map_or(Way::Auto, Way::from),
        max_bits: args.theorem.max_bits.unwrap_or(1 << 21) as usize,
        seed: args.map.seed,
        candidates: args.map.candidates as usize,
    };
    let certified = certify(view, &request)?;
    let progress = Progress::new(shared, "searching", TIGHT_CANDIDATES, "projections");
    let tight = tight(args.map.seed).build_with(view, None, &|candidates, _| progress.add(candidates))?;
    drop(progress);
    let weights = &certified.weights;
    let name = if scale == Scale::Paper { "paper" } else { "certified" };
    let model = super::model(prepared, &weights.map, args, name, weights.tries, weights.kappa);
    let ranks = super::ranks(&model);
    let proved = certified.log2_delta().map(|log2| Claim::contextual_mapping(certified.r, log2));
    super::write(args, shared, prepared, agreement, &model, proved)?;
    let beside = Report { data: &prepared.data, view, tight: &tight, agreement, ranks };
    let report = TheoremReport { scale: name, request, certified: &certified, beside };
    let (json, mut text) = (report.json(), report.text());
    if let Some(file) = &args.theorem.figure {
        let tight = tight.certificate.log2_delta();
        figure::write(file, &report.rows(view, tight, super::file_name(&prepared.data.name))?)?;
        let _ = writeln!(text, "drawn to {}", file.display());
    }
    // At its own scale the theorem promises a gap, too.
    let short = scale == Scale::Paper && !certified.exceeds_theorem();
    Ok(Outcome::decided(json, text, certified.holds() && !short))
}

/// A short search, enough to see the order of magnitude.
fn tight(seed: u64) -> FloatWeights {
    FloatWeights { labels_only: false, kappa: None, w_o: None, seed, candidates: TIGHT_CANDIDATES }
}

/// What the theorem's weights do, with the tight map beside them.
struct TheoremReport<'a> {
    scale: &'static str,
    request: Request,
    certified: &'a Certified,
    beside: Report<'a>,
}

impl TheoremReport<'_> {
    /// Bits that were computed with.
    fn bits(&self) -> usize {
        self.certified.direct.as_ref().map_or(53, |direct| direct.bits)
    }

    fn json(&self) -> Value {
        let mut json = self.facts();
        if let (Value::Object(all), Value::Object(found)) = (&mut json, self.found()) {
            all.extend(found);
        }
        json
    }

    /// What it was about.
    fn facts(&self) -> Value {
        let (weights, beside) = (&self.certified.weights, &self.beside);
        let constants = weights.separation.constants;
        let (merged, example) = beside.merged();
        json!({
            "scale": self.scale,
            "data": beside.data.name,
            "sequences": beside.data.sequences(),
            "tokens": beside.data.tokens(),
            "longest": beside.data.longest(),
            "d": beside.view.vectors.d(),
            "vocabulary": weights.separation.vocabulary,
            "contexts": beside.view.contexts.count,
            "positions": beside.view.vectors.positions.is_some(),
            "mask": MaskConfig::new(&beside.view.mask),
            "multisets": weights.multisets,
            "r_min": constants.r_min,
            "r_max": constants.r_max,
            "epsilon": constants.epsilon,
            "kappa": weights.kappa,
            "w_o": weights.map.w[weights.map.w.len() - 1],
            "directions": weights.tries,
            "ranks": beside.ranks,
            "same_for_all_weights": merged,
            "same_for_all_weights_example": beside.pair(example),
        })
    }

    /// What was proved.
    fn found(&self) -> Value {
        let (found, beside) = (self.certified, &self.beside);
        let ids = |log2: f64| log2 + found.log2_w.lo();
        let identity = found.identity.as_ref();
        json!({
            "log2_delta_theorem": found.theorem.log2_delta,
            "r_theorem": found.theorem.r,
            "bits_theorem": found.theorem.bits(),
            "contextual_map": found.holds(),
            "certified": found.holds(),
            "exceeds_theorem": found.exceeds_theorem(),
            "log2_gap": found.log2_delta(),
            "log2_promise": found.weights.log2_promise,
            "log2_gap_tight": beside.tight.certificate.log2_delta(),
            "r": found.r,
            "bits": self.bits(),
            "way": self.request.way,
            "log2_gap_identity": identity.and_then(|way| way.closest).map(|(log2, _)| ids(log2.lo())),
            "log2_gap_direct": found.direct.as_ref().and_then(|way| way.closest).map(|(log2, _)| ids(log2.lo())),
            "pairs": identity.map(|way| way.pairs),
            "most_contexts": identity.map(|way| way.most_contexts),
            "undecided": identity.map_or(0, |way| way.undecided.len()),
            "coinciding": 0,
            "scores_apart": found.apart,
            "scores_needed": found.weights.needed,
            "other_token_gap": found.other_token,
            "closest": beside.pair(found.same_token().map(|(_, tokens)| tokens)),
        })
    }

    fn text(&self) -> String {
        let mut text = format!("{}\n{}", self.beside.data.name, self.beside.facts());
        text += &self.weights();
        text += &self.proof();
        text += &self.distances();
        if let Some((log2, (a, b))) = self.certified.same_token() {
            let _ = write!(
                text,
                "closest ids of one token: {} apart\n{}",
                power_of_two(log2.lo()),
                self.beside.sentences(a, b)
            );
        }
        text + &self.beside.findings()
    }

    fn weights(&self) -> String {
        let weights = &self.certified.weights;
        let from = match self.request.scale {
            Scale::Paper => "v from Lemma 2, u.u' by (29), W_O by (32)",
            Scale::Certified => "the best direction, u.u' no larger than the lemmas ask for",
        };
        let lemma = match (weights.multisets, self.request.scale) {
            (true, _) => "Lemma M",
            (false, Scale::Paper) => "Lemma 1",
            (false, Scale::Certified) => "Lemma S",
        };
        let [q, k, v, o] = self.beside.ranks;
        format!(
            "weights: {from}: u.u' = {:.6e}, |W_O| = {:.6e}, {} tried; ranks {q}, {k}, {v}, {o} (exact)\n\
             scores of different tokens are at least {:.4} apart for every query; {lemma} asks for {:.4}\n",
            weights.kappa,
            weights.map.w[weights.map.w.len() - 1],
            plural(weights.tries, "direction"),
            self.certified.apart,
            weights.needed,
        )
    }

    fn proof(&self) -> String {
        let found = self.certified;
        let mut text = match found.log2_delta() {
            Some(log2) if log2.is_finite() => format!(
                "a contextual map, proved: any two ids are at least {} apart and shorter than r = {:.6}\n",
                power_of_two(log2),
                found.r
            ),
            Some(_) => "a contextual map: there is one context only, nothing to tell apart\n".to_owned(),
            None => "NOT proved to be a contextual map\n".to_owned(),
        };
        if let Some(way) = &found.identity {
            let _ = writeln!(
                text,
                "  by the identity: {} of neighboring contexts, logarithms in double precision",
                plural(way.pairs, "pair")
            );
        }
        if let Some(way) = &found.direct {
            let _ =
                writeln!(text, "  directly: {} of up to {} bits, subtracted", plural(way.ids, "id"), count(way.bits));
        }
        if !found.exceeds_theorem() {
            text += "  it is NOT proved to exceed the delta of the theorem\n";
        }
        text
    }

    /// The distance between theory and practice.
    fn distances(&self) -> String {
        let found = self.certified;
        let row = |name: &str, log2: Option<f64>, note: String| {
            let Some(log2) = log2.filter(|log2| log2.is_finite()) else {
                return vec![name.to_owned(), "-".to_owned(), "-".to_owned(), "-".to_owned(), note];
            };
            let bits = (-log2).ceil().max(1.0);
            let shown = if bits < 1e6 { count(bits as usize) } else { format!("{bits:.3e}") };
            let gap = if bits < 1e6 { format!("2^{log2:.2}") } else { format!("2^{log2:.4e}") };
            vec![name.to_owned(), gap, shown, bytes((bits / 8.0).ceil()), note]
        };
        let (theorem, gap) = (found.theorem.log2_delta, found.log2_delta());
        let ratio = gap.filter(|gap| gap.is_finite() && theorem.is_finite()).map_or(String::new(), |gap| {
            let share = gap / theorem;
            let times = gap - theorem;
            let times = if times < 1e6 { format!("2^{times:.0}") } else { format!("2^{times:.4e}") };
            format!("{:.2} % of the theorem's bits, a gap {times} times as large", 100.0 * share)
        });
        let head = ["gap of two ids", "", "bits", "one number", ""].map(str::to_owned).to_vec();
        let plus = match self.request.scale {
            Scale::Paper => "for these weights",
            Scale::Certified => "what Theorem 2+ promises of these weights",
        };
        table(
            &[
                head,
                row("Theorem 2, eq. 8", Some(theorem), "promised".to_owned()),
                row("Lemmas S and M", Some(found.weights.log2_promise), plus.to_owned()),
                row("these weights", gap, format!("proved; {ratio}")),
                row(
                    "the tight map",
                    self.beside.tight.certificate.log2_delta(),
                    format!("proved; {}, --scale tight", plural(self.beside.tight.found.candidates, "candidate")),
                ),
            ],
            &[4],
        )
    }

    /// The rows of the figure: three toys, and this dataset.
    fn rows(&self, view: &View, tight: Option<f64>, name: String) -> Result<Vec<Row>> {
        let other = if self.request.scale == Scale::Paper { Scale::Certified } else { Scale::Paper };
        let request = |scale| Request { scale, way: Way::Identity, ..self.request };
        let other = certify(view, &request(other))?.log2_delta();
        let this = self.certified.log2_delta();
        let (paper, certified) = if self.request.scale == Scale::Paper { (this, other) } else { (other, this) };
        let mut rows = figure::toys(self.request)?;
        rows.push(Row { name, theorem: Some(self.certified.theorem.log2_delta), paper, certified, tight });
        Ok(rows)
    }
}
