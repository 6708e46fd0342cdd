//! `monolayer demo`: the tour on the embedded example.

use std::path::{Path, PathBuf};

use anyhow::Result;
use monolayer::arithmetic::kernels::Real;
use monolayer::fs::replace_file;
use monolayer::{AnyModel, Compiled, Dataset, Error, Memorizer, Model};
use monolayer_lab::claims;
use monolayer_lab::report::{self, Data};
use monolayer_lab::{example, picture};
use serde_json::json;

use super::{Outcome, Shared, WRITES, memorize};
use crate::output::{self, count};

/// Show everything on a small embedded corpus: compile it, run the model, check it, break it, and write a page about it
#[derive(clap::Args)]
#[command(after_help = "Example: monolayer demo")]
pub struct Args {
    /// Directory for the model and the page (default: a new temporary directory)
    #[arg(long, value_name = "DIR", help_heading = WRITES)]
    out: Option<PathBuf>,
    /// Write the picture of the context ids of "May" to this SVG file
    #[arg(long, value_name = "FILE", help_heading = WRITES)]
    picture: Option<PathBuf>,
}

pub fn run(args: &Args, shared: &Shared) -> Result<Outcome> {
    let say = |text: &str| output::say(shared, text);
    let scratch = tempfile::tempdir()?;
    let out = args.directory()?;
    let file = out.join("harbor.conll");
    replace_file(&file, example::TEXT.as_bytes())?;
    let data = example::dataset()?;
    say(&format!("compiling {} tokens into one layer", count(data.tokens())));
    let compiled = Memorizer::new().compile(&data)?;
    let dir = out.join("model");
    compiled.save(&dir)?;

    let right = |model: &AnyModel| -> Result<usize> { Ok(model.right(&data)?.unwrap_or(0)) };
    let with_attention = right(compiled.model())?;
    let without_attention = right(&compiled.model().without_attention())?;
    say("checking it, and once more with one weight changed");
    let report = monolayer_check::verify(&dir, file.to_str(), &monolayer_check::Options::default());

    // One output weight of one hidden unit changes its sign.
    let broken = scratch.path().join("broken");
    with_one_sign_changed(compiled.model()).save(&broken)?;
    let refuted = monolayer_check::verify(&broken, file.to_str(), &monolayer_check::Options::default());

    let page = out.join("report.html");
    let source = Data { dataset: &data, source: &file.to_string_lossy() };
    replace_file(&page, report::page(&[&dir], Some(&source))?.as_bytes())?;
    if let Some(path) = &args.picture {
        draw(path, &picture::ids(compiled.model(), &data, "May", 0)?)?;
    }

    let verified = report.verdict == monolayer_check::Verdict::Verified;
    let json = json!({
        "memorize": memorize::report(&data, &compiled, 0.0),
        "right": with_attention,
        "right_without_attention": without_attention,
        "verify": report.json(),
        "verify_broken": refuted.json(),
        "statements": claims::all().count(),
        "page": page,
        "picture": args.picture,
    });
    let found = Found {
        data: &data,
        compiled: &compiled,
        right: [with_attention, without_attention],
        checked: checked(&report, &refuted, &out),
        page: &page,
    };
    let holds = verified && refuted.verdict == monolayer_check::Verdict::Refuted;
    Ok(Outcome::decided(json, found.text(), holds))
}

impl Args {
    /// Where to write.
    fn directory(&self) -> Result<PathBuf> {
        let out = match &self.out {
            Some(out) => out.clone(),
            None => tempfile::Builder::new().prefix("monolayer-demo-").tempdir()?.keep(),
        };
        std::fs::create_dir_all(&out).map_err(|e| Error::io(&out, e))?;
        Ok(out)
    }
}

/// What the tour found.
struct Found<'a> {
    data: &'a Dataset,
    compiled: &'a Compiled,
    /// Tokens right with attention and without.
    right: [usize; 2],
    checked: String,
    page: &'a Path,
}

impl Found<'_> {
    fn text(&self) -> String {
        let [with_attention, without_attention] = self.right;
        let beside = claims::all().filter(|claim| claim.printed.is_empty()).count();
        format!(
            "A corpus of {} tokens ({} sentences, {} labels), compiled into one rank-1 attention layer, no training:\n{}\n\
             Run: {with_attention} tokens right; with its attention switched off, {without_attention}.\n\n\
             {}\n\n\
             The paper: monolayer claims runs {} statements of it, each with its printed formula and a verdict, and {} beside it.\n\n\
             Look at it: open {} in a browser, and point at words.\n\n\
             next: monolayer memorize YOUR.conll --out model\n",
            count(self.data.tokens()),
            count(self.data.sequences()),
            self.data.label_ids().map_or(0, |ids| ids.iter().flatten().max().map_or(0, |&m| m + 1)),
            memorize::table_of(self.data, self.compiled, None),
            self.checked,
            claims::all().count() - beside,
            beside,
            self.page.display(),
        )
    }
}

/// What the checker said of the model, and of the broken one.
fn checked(report: &monolayer_check::Report, broken: &monolayer_check::Report, out: &Path) -> String {
    let counterexample = broken.counterexamples.first().map_or(String::new(), |c| {
        let place = c.place.replace(out.to_str().unwrap_or(""), "");
        format!("\n  {} {:?}: {}", place.trim_start_matches('/'), c.text, c.what)
    });
    format!(
        "Check, by a program that shares no code with the compiler: {}; {} tokens verified in {}, rounding included{}; \
         {} cannot be right.\n\n\
         Break it, the sign of one weight: {}.{counterexample}",
        report.verdict.name(),
        count(report.verified),
        report.precision,
        memorize::margin(report.smallest_margin_ratio),
        report.impossible,
        broken.verdict.name(),
    )
}

/// A picture as a file of the kind that its name says.
fn draw(path: &Path, scene: &monolayer_lab::plot::Scene) -> Result<(), Error> {
    if path.extension().is_none_or(|ending| ending != "svg") {
        return Err(Error::setting(format!("{}: no kind of picture", path.display()), "name it .svg"));
    }
    let alt = "Boltzmann curves of five sentences above the line of their context ids";
    replace_file(path, scene.svg_file(alt).as_bytes())
}

/// A model with one output weight of one hidden unit of the other sign.
fn with_one_sign_changed(model: &AnyModel) -> AnyModel {
    fn change<R: Real>(model: &Model<R>) -> AnyModel
    where
        AnyModel: From<Model<R>>,
    {
        let mut model = model.clone();
        let block = model.transformer.layers[0].feed_forward.as_mut().expect("a compiled model has hidden units");
        let weight = block.w2.data.iter_mut().find(|w| **w != R::ZERO).expect("a unit that does something");
        *weight = R::ZERO - *weight;
        model.into()
    }
    match model {
        AnyModel::F32(model) => change(model),
        AnyModel::F64(model) => change(model),
        AnyModel::Exact(_) => unreachable!("gated units are floats"),
    }
}
