//! `monolayer generate`: a text from a next-token model.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use monolayer::data::Split;
use monolayer::model::Generator;
use monolayer::model::certificate_file::{ClaimedLabels, claimed_labels};
use monolayer::{AnyModel, Dataset, Error};
use serde_json::json;

use super::{DOES, Outcome, Shared};
use crate::output::{Progress, count, say};

/// Write a text with a model whose labels are the next tokens, such as one that `memorize --text` wrote
///
/// The model is fed the words given, then its own labels, one token at a time. It stops where the label is the end of the text.
/// Without words it starts as the memorized text does. Each token is printed to stdout as soon as it is known; at the end, a line
/// on stderr says how many tokens the certificate covers. A token is covered if the whole text, up to its end, is the one that
/// certificate.json is about, and what follows the token is proved in the model's precision. `monolayer verify` checks the
/// certificate.
#[derive(clap::Args)]
#[command(after_help = "Example: monolayer generate model Apache License --tokens 20
         monolayer memorize --text LICENSE --out model && monolayer generate model")]
pub struct Args {
    /// The model directory
    #[arg(value_name = "DIR")]
    model: PathBuf,
    /// How the text starts (default: as the memorized text does)
    #[arg(value_name = "WORDS")]
    words: Vec<String>,
    /// Largest number of tokens, including the given ones (default: as many as the memorized text has, else 1,000)
    #[arg(long, value_name = "N", help_heading = DOES)]
    tokens: Option<usize>,
}

/// How long a text may get where nothing else is known.
const MOST: usize = 1000;

pub fn run(args: &Args, shared: &Shared) -> Result<Outcome> {
    let model = AnyModel::open(&args.model)?;
    let dtype = model.config().dtype;
    let claimed = claimed_labels(&args.model, &dtype)?;
    let prompt = args.prompt(&model)?;
    let memorized = claimed.as_ref().map(|claimed| claimed.tokens);
    let most = args.tokens.or(memorized.map(|tokens| tokens.max(prompt.len()))).unwrap_or(MOST);
    if prompt.len() > most {
        let what = format!("{} tokens are given, and --tokens asks for {most} at most", prompt.len());
        return Err(Error::setting(what, "ask for more").into());
    }
    let mut page = Page::new(shared, split(&model), most);
    let clock = Instant::now();
    let mut generator = Generator::new(&model)?;
    for token in &prompt {
        generator.prompt(token)?;
        page.put(token)?;
    }
    while generator.tokens().len() < most
        && let Some(token) = generator.step()?
    {
        page.put(token)?;
    }
    page.end()?;
    let (seconds, attention) = (clock.elapsed().as_secs_f64(), generator.attention_time().as_secs_f64());
    let (shown, ended) = (generator.tokens().len(), generator.ended());
    let covered =
        claimed.map(|claimed| covered(&mut generator, &claimed, [prompt.len(), shown], shared)).transpose()?;
    let certified = covered.unwrap_or(0);
    if !shared.quiet {
        eprintln!("{}", summary(shown, covered, &dtype, ended));
        if seconds >= 1.0 {
            let share = 100.0 * attention / seconds;
            eprintln!("{seconds:.1} seconds, {share:.0} % of them for attention over all tokens before");
        }
    }
    let longest = model.source().domain().map(|domain| domain.longest);
    if let Some(longest) = longest.filter(|&longest| shown > longest) {
        let what = format!("the model was made for texts of {} tokens at most", count(longest));
        say(shared, &format!("warning: {what}. Nothing is known of its answers beyond"));
    }
    let json = json!({
        "text": split(&model).joined(&generator.tokens()[..shown]),
        "tokens": shown,
        "certified": certified,
        "arithmetic": dtype,
        "ended": ended,
        "seconds": seconds,
        "attention_seconds": attention,
        "outside": longest.map(|longest| shown.saturating_sub(longest)),
    });
    Ok(Outcome::done(json, String::new()))
}

impl Args {
    /// The tokens that are given.
    fn prompt(&self, model: &AnyModel) -> Result<Vec<String>> {
        let given = self.words.join(" ");
        let tokens: Vec<String> = split(model).tokens(&given).into_iter().map(str::to_owned).collect();
        match (tokens.is_empty(), model.source().text()) {
            (false, _) => Ok(tokens),
            (true, Some(text)) => Ok(vec![text.first.clone()]),
            (true, None) => Err(Error::setting(
                format!("{}: it is not known how the text of this model starts", self.model.display()),
                "give its first words",
            )
            .into()),
        }
    }
}

/// What the model's tokens are.
pub fn split(model: &AnyModel) -> Split {
    model.source().text().map_or(Split::Word, |text| text.split)
}

/// How many of the tokens shown the certificate covers: none unless the text, up to its end, is its data.
fn covered(
    generator: &mut Generator,
    claimed: &ClaimedLabels,
    [given, shown]: [usize; 2],
    shared: &Shared,
) -> Result<usize> {
    // The certificate names its data by a hash of the whole: the rest of the text is written, unseen, to compare.
    let progress = Progress::new(shared, "comparing", claimed.tokens.saturating_sub(shown), "tokens");
    while generator.tokens().len() < claimed.tokens && generator.step()?.is_some() {
        progress.add(1);
    }
    if generator.tokens().len() != claimed.tokens {
        return Ok(0);
    }
    // What follows the tokens given is what was given, whatever the model says.
    let (tokens, labels) = (generator.tokens(), generator.labels());
    let following = tokens[1..given].iter().map(String::as_str).chain(labels[given - 1..].iter().copied());
    let data = Dataset::from_sequences(&[tokens], &[following.collect::<Vec<&str>>()])?;
    if data.hash() != claimed.hash {
        return Ok(0);
    }
    // Impossible tokens are among those given: everywhere else the model's label is that of the data.
    let open = claimed.undecided.iter().filter(|(_, token)| *token as usize <= shown).count();
    Ok(shown.saturating_sub(open + claimed.impossible))
}

/// What is to be said of a text beside it. `covered` is nothing where there is no certificate.
fn summary(shown: usize, covered: Option<usize>, dtype: &str, ended: bool) -> String {
    let tokens = format!("{} token{}", count(shown), if shown == 1 { "" } else { "s" });
    let stopped = if ended { "" } else { "; stopped before an end (--tokens)" };
    match covered {
        None => format!("{tokens}, none certified: the model has no certificate for labels in {dtype}{stopped}"),
        Some(0) => format!("{tokens}, none certified: this is not the memorized text{stopped}"),
        Some(covered) => format!("{tokens}, {} certified in {dtype}{stopped}", count(covered)),
    }
}

/// Where the text goes: to stdout as it comes, or nowhere where it will be a field of JSON.
struct Page {
    out: Option<io::Stdout>,
    split: Split,
    empty: bool,
    /// Whether the last token ended a line.
    line_ended: bool,
    progress: Option<Progress>,
}

impl Page {
    fn new(shared: &Shared, split: Split, most: usize) -> Self {
        let out = (!shared.json).then(io::stdout);
        let progress = shared.json.then(|| Progress::new(shared, "writing", most, "tokens"));
        Self { out, split, empty: true, line_ended: false, progress }
    }

    fn put(&mut self, token: &str) -> Result<()> {
        let between = if self.empty { "" } else { self.split.between() };
        self.empty = false;
        self.line_ended = token.ends_with('\n');
        self.write(&format!("{between}{token}"))?;
        self.progress.iter().for_each(|progress| progress.add(1));
        Ok(())
    }

    /// Ends the last line of words; characters are left as they are, but for people.
    fn end(&mut self) -> Result<()> {
        let terminal = io::stdout().is_terminal();
        if self.split == Split::Word || (terminal && !self.line_ended) {
            self.write("\n")?;
        }
        self.progress = None;
        Ok(())
    }

    fn write(&mut self, text: &str) -> Result<()> {
        let Some(out) = &mut self.out else { return Ok(()) };
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            // A reader that closes the pipe early has seen what it wanted.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.out = None,
            Err(error) => return Err(Error::io(Path::new("stdout"), error).into()),
            Ok(()) => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_certified_is_said() {
        assert_eq!(summary(5000, Some(5000), "f64", true), "5,000 tokens, 5,000 certified in f64");
        assert!(summary(1, None, "f32", true).starts_with("1 token, none certified: the model has no"));
        assert!(
            summary(7, Some(0), "f64", false).ends_with("not the memorized text; stopped before an end (--tokens)")
        );
    }
}
