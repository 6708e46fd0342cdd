//! The report: one HTML page about models and runs, which opens from disk, asks nothing of the network, follows the reader's
//! light or dark setting, and prints.
//!
//! - [`model`]: what is said of a model directory; [`tour`] a walk through it; [`pack`] its numbers in few bytes.
//! - [`approximation`]: what is shown of an approximated function.
//! - [`run`]: what is said of the directory of an experiment or of a training.
//! - [`text`]: the little markup of summaries.

pub mod approximation;
pub mod model;
pub mod pack;
pub mod run;
pub mod sample;
pub mod text;
pub mod tour;

use std::path::Path;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use monolayer::{Dataset, Error, Result};
use serde_json::Value;

use crate::plot::Figure;
use crate::plot::ink;

/// Pages stay below this.
pub const MOST_BYTES: usize = 5_000_000;

const STYLE: &str = include_str!("report/page.css");
const SCRIPTS: [&str; 10] = [
    include_str!("report/plot.js"),
    include_str!("report/model.js"),
    include_str!("report/curve.js"),
    include_str!("report/bars.js"),
    include_str!("report/switches.js"),
    include_str!("report/story.js"),
    include_str!("report/tour.js"),
    include_str!("report/expression.js"),
    include_str!("report/approximation.js"),
    include_str!("report/start.js"),
];

/// A part of the page: a title for the table of contents, and the rest.
pub struct Section {
    /// Its title.
    pub title: String,
    /// What it holds.
    pub body: Markup,
}

/// A dataset for the tours of models, and where it came from.
pub struct Data<'a> {
    /// The dataset.
    pub dataset: &'a Dataset,
    /// Its file, for the checker, which reads files only.
    pub source: &'a str,
}

/// The page about some directories, each a model or a run.
pub fn page(directories: &[impl AsRef<Path>], data: Option<&Data>) -> Result<String> {
    let sections: Vec<Section> =
        directories.iter().map(|directory| section(directory.as_ref(), data)).collect::<Result<_>>()?;
    Ok(render(&sections))
}

/// The page about a model in memory: `save` writes its directory, as `Compiled::save` and `AnyModel::save` do.
///
/// ```
/// use monolayer::{Dataset, Memorizer};
///
/// let data = Dataset::from_sequences(&[["May", "sails"], ["in", "May"]], &[["PER", "O"], ["O", "DATE"]])?;
/// let compiled = Memorizer::new().compile(&data)?;
/// let html = monolayer_lab::report::page_in_memory("May", |dir| compiled.save(dir), Some(&data))?;
/// assert!(html.starts_with("<!DOCTYPE html>") && html.contains("<h1>May</h1>"));
/// # Ok::<(), monolayer::Error>(())
/// ```
pub fn page_in_memory(title: &str, save: impl FnOnce(&Path) -> Result<()>, data: Option<&Dataset>) -> Result<String> {
    let room = tempfile::tempdir().map_err(|e| Error::io("a temporary directory", e))?;
    let directory = room.path().join("model");
    save(&directory)?;
    let file = data.map(written).transpose()?;
    let source = file.as_ref().map(|file| file.path().to_string_lossy().into_owned());
    let data = data.zip(source.as_deref()).map(|(dataset, source)| Data { dataset, source });
    Ok(render(&[Section { title: title.to_owned(), ..section(&directory, data.as_ref())? }]))
}

/// A dataset as a file, for the checker.
pub(crate) fn written(data: &Dataset) -> Result<tempfile::NamedTempFile> {
    let fail = |e| Error::io("a temporary file", e);
    let mut file = tempfile::Builder::new().suffix(".jsonl").tempfile().map_err(fail)?;
    data.write_canonical(&mut file).map_err(fail)?;
    Ok(file)
}

fn section(directory: &Path, data: Option<&Data>) -> Result<Section> {
    let is_model = ["model.safetensors", "weights.json"].iter().any(|name| directory.join(name).is_file());
    if is_model {
        let mut section = model::section(directory, data)?;
        if run::is_run(directory) {
            section.body = html! { (section.body) h2 { "How it was trained" } (run::body(directory, &Value::Null)?) };
        }
        Ok(section)
    } else if run::is_run(directory) {
        run::section(directory)
    } else if directory.is_dir() {
        let help = "give a model (config.json, model.safetensors) or a run (points.jsonl, metrics.jsonl or *.csv)";
        Err(Error::setting(format!("{}: neither a model nor a run", directory.display()), help))
    } else {
        Err(Error::io(directory, std::io::Error::from(std::io::ErrorKind::NotFound)))
    }
}

/// Sections as a page.
pub fn render(sections: &[Section]) -> String {
    let title = match sections {
        [only] => format!("{} · monolayer", only.title),
        _ => "monolayer".to_owned(),
    };
    let body = html! {
        header {
            p.brand { "monolayer" }
            p.tagline { "one self-attention layer, one head, rank-1 weights" }
            @if sections.len() > 1 {
                nav aria-label="Contents" { ol {
                    @for (i, section) in sections.iter().enumerate() { li { a href=(format!("#s{i}")) { (section.title) } } }
                } }
            }
        }
        main {
            @for (i, section) in sections.iter().enumerate() {
                section id=(format!("s{i}")) { h1 { (section.title) } (section.body) }
            }
        }
        footer { p { "Made by monolayer " (env!("CARGO_PKG_VERSION")) ". This page is complete: it asks nothing of the network." } }
        div #tip role="status" hidden {}
    };
    // Only scripts with this number run, and nobody knows it before the page is complete.
    let nonce = &blake3::hash(body.0.as_bytes()).to_hex()[..32];
    let policy = format!("default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'nonce-{nonce}'");
    let colors = format!(
        ":root{{{}}}@media screen and (prefers-color-scheme:dark){{:root{{{}}}}}",
        ink::variables(false),
        ink::variables(true)
    );
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(colors)) (PreEscaped(STYLE)) }
            }
            body {
                (body)
                script nonce=(nonce) { @for script in SCRIPTS { (PreEscaped(script)) } }
            }
        }
    }
    .into_string()
}

/// A figure with its caption, drawn for wide and for narrow screens.
pub(crate) fn figure(figure: &Figure) -> Markup {
    html! {
        figure.chart {
            div.wide { (PreEscaped(figure.svg_element(640.0, 400.0))) }
            div.narrow { (PreEscaped(figure.svg_element(360.0, 330.0))) }
            @if !figure.caption.is_empty() { figcaption { (figure.caption) } }
        }
    }
}

/// A headline number: what it is, the number, what it is relative to.
pub(crate) fn card(name: &str, value: &str, note: &str) -> Markup {
    html! { div.card { dt { (name) } dd { span.value { (value) } @if !note.is_empty() { span.note { (note) } } } } }
}

/// Data for a script: JSON that no HTML parser takes for anything else.
pub(crate) fn data_block(class: &str, value: &serde_json::Value) -> Markup {
    let text = value.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
    html! { script class=(class) type="application/json" { (PreEscaped(text)) } }
}
