//! The stages as tasks on other machines: what a task does, and what asks for tasks. Shards and results are bytes, which an
//! engine keeps, moves and computes again where they are lost.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use super::contexts::{ContextRule, GroupContexts, SeenToken, seen_of_shard};
use super::ids::IdPass;
use super::passes::{
    ContextTokenPass, FreePass, LabelPass, PlacePass, Runner, SequencePass, ShardPass, WordTokenPass, within,
};
use super::shard::OwnedShard;
use super::whole::{HashPass, LengthPass, MultisetPass};
use super::wire::{Wire, fields};
use super::word_groups::GroupTable;
use super::{fit, memorize_with};
use crate::data::context::check_mask;
use crate::data::{DataOptions, Dataset, Labels, Names, Orderings, Tokens, Vocabulary, Written};
use crate::error::{Error, Result};
use crate::memorize::alphabet;
use crate::memorize::compiled::Compiled;
use crate::memorize::settings::{Memorizer, Method};

/// Who runs tasks over the shards, which it has in order.
pub trait Engine: Sync {
    /// [`task`] of each shard, with what is for all and what is for each, where there is any; [`merge`]d where results shrink.
    fn each_shard(&self, name: &str, request: Vec<u8>, own: Vec<Vec<u8>>, shrinks: bool) -> Result<Vec<Vec<u8>>>;

    /// [`split`] of each shard, and [`resolve`] of all that has one number.
    fn shuffle(&self, request: Vec<u8>, parts: usize) -> Result<Vec<Vec<u8>>>;

    /// How many tasks run at a time.
    fn workers(&self) -> usize;
}

/// Bytes of one part of a shuffle, about.
const PART: u64 = 32 << 20;

struct Remote<'a> {
    engine: &'a dyn Engine,
    /// The tokens of each shard.
    shards: Vec<Range<usize>>,
}

impl Runner for Remote<'_> {
    fn pass<P: ShardPass>(&self, pass: &P, tokens: &[usize]) -> Result<P::Part> {
        let own = |shard: &Range<usize>| within(tokens, shard).to_vec().bytes();
        let own = if tokens.is_empty() { Vec::new() } else { self.shards.iter().map(own).collect() };
        let parts = self.engine.each_shard(P::NAME, pass.bytes(), own, P::SHRINKS)?;
        Ok(P::merged(parts.iter().map(|part| value(part)).collect::<Result<_>>()?))
    }

    fn contexts(&self, groups: &GroupTable, rule: &ContextRule) -> Result<GroupContexts> {
        let bytes: u64 = groups.keys.iter().map(|(_, count)| count * size_of::<SeenToken>() as u64).sum();
        let parts = (bytes.div_ceil(PART) as usize).max(2 * self.engine.workers());
        let mut request = Vec::new();
        groups.put(&mut request);
        rule.put(&mut request);
        parts.put(&mut request);
        let found = self.engine.shuffle(request, parts)?;
        let found = found.iter().map(|part| value(part)).collect::<Result<_>>()?;
        Ok(GroupContexts::joined(found).without_base(groups))
    }
}

/// A value from all of some bytes.
fn value<T: Wire>(mut bytes: &[u8]) -> Result<T> {
    T::get(&mut bytes).filter(|_| bytes.is_empty()).ok_or_else(|| {
        Error::mismatch("bytes of a task that are not what they should be", "is the same version on all machines?")
    })
}

/// What is done with a pass that is known by its name.
trait Visit {
    fn visit<P: ShardPass>(&self) -> Result<Vec<u8>>;
}

fn by_name(name: &str, visit: &impl Visit) -> Result<Vec<u8>> {
    macro_rules! passes {
        ($($pass:ty),*) => {
            match name {
                $(name if name == <$pass>::NAME => visit.visit::<$pass>(),)*
                _ => Err(Error::mismatch(format!("no task {name:?}"), "is the same version on all machines?")),
            }
        };
    }
    passes!(
        LabelPass,
        PlacePass<'static>,
        SequencePass,
        FreePass,
        ContextTokenPass<'static>,
        WordTokenPass<'static>,
        IdPass<'static>,
        LengthPass,
        HashPass,
        MultisetPass
    )
}

struct OfShard<'a> {
    request: &'a [u8],
    shard: OwnedShard,
    tokens: Vec<usize>,
}

impl Visit for OfShard<'_> {
    fn visit<P: ShardPass>(&self) -> Result<Vec<u8>> {
        Ok(value::<P>(self.request)?.of_shard(&self.shard.shard(), &self.tokens).bytes())
    }
}

struct Merged<'a>(&'a [&'a [u8]]);

impl Visit for Merged<'_> {
    fn visit<P: ShardPass>(&self) -> Result<Vec<u8>> {
        Ok(P::merged(self.0.iter().map(|part| value(part)).collect::<Result<_>>()?).bytes())
    }
}

/// The result of a pass, by its name, for a numbered shard; `own` is for this shard alone, and may be empty.
pub fn task(name: &str, request: &[u8], shard: &[u8], own: &[u8]) -> Result<Vec<u8>> {
    let tokens = if own.is_empty() { Vec::new() } else { value(own)? };
    by_name(name, &OfShard { request, shard: value(shard)?, tokens })
}

/// Results of a pass for shards in a row as one; summaries, too.
pub fn merge(name: &str, parts: &[&[u8]]) -> Result<Vec<u8>> {
    if name == SUMMARY {
        let parts = parts.iter().map(|part| value(part)).collect::<Result<_>>()?;
        return Ok(Summary::merged(parts).bytes());
    }
    by_name(name, &Merged(parts))
}

/// The labeled tokens of groups of a shard, in as many parts as asked for: by context, so that no word makes one part large.
pub fn split(request: &[u8], shard: &[u8]) -> Result<Vec<Vec<u8>>> {
    let (groups, rule, parts): (GroupTable, ContextRule, usize) = value(request)?;
    let shard: OwnedShard = value(shard)?;
    let seen = seen_of_shard(&shard.shard(), &groups, &rule, &(0..groups.keys.len() as u32));
    let mut all = vec![Vec::new(); parts];
    for token in seen {
        token.put(&mut all[(token.key[0] % parts as u64) as usize]);
    }
    Ok(all)
}

/// The contexts of one part of all shards.
pub fn resolve(parts: &[&[u8]]) -> Result<Vec<u8>> {
    let mut seen = Vec::new();
    for mut part in parts.iter().copied() {
        while !part.is_empty() {
            seen.push(SeenToken::get(&mut part).map_or_else(|| value(&[0]), Ok)?);
        }
    }
    Ok(GroupContexts::of(seen).bytes())
}

/// A part of a dataset as it was read: words and labels have numbers of their own.
pub struct ReadShard {
    words: Vec<String>,
    labels: Vec<String>,
    /// How words and labels were written.
    written: (bool, bool),
    word_ids: Vec<u32>,
    label_ids: Vec<Option<u32>>,
    lengths: Vec<u32>,
}

fields!(ReadShard { words, labels, written, word_ids, label_ids, lengths });

/// What all must know of shards in a row.
struct Summary {
    /// Words and labels in order of first appearance.
    words: Vec<String>,
    labels: Vec<String>,
    /// How words and labels were written, wherever that changes.
    written: Vec<(bool, bool)>,
    /// How many tokens each sequence has.
    lengths: Vec<u32>,
    /// How many tokens each shard has.
    tokens: Vec<usize>,
}

fields!(Summary { words, labels, written, lengths, tokens });

/// The name of summaries among tasks.
const SUMMARY: &str = "summary";

/// Reads a file, or the sequences of a range of its bytes. Nothing where a range of this file cannot be read by itself.
pub fn read(path: &Path, range: Option<Range<u64>>, options: &DataOptions) -> Result<Option<Vec<u8>>> {
    let data = match range {
        Some(range) => match Dataset::read_piece(path, range, options)? {
            Some(data) => data,
            None => return Ok(None),
        },
        None => Dataset::open_with(path, options)?.data,
    };
    let lengths = data.ranges().map(|range| range.len() as u32).collect();
    let (Tokens::Words { word_ids, vocabulary }, Labels::Classes { label_ids, names }) = (data.tokens, data.labels)
    else {
        return Err(Error::mismatch(
            format!("{}: not words with class labels", path.display()),
            "a cluster memorizes these alone",
        ));
    };
    let written = (data.written.tokens == Names::Integers, data.written.labels == Names::Integers);
    let (words, labels) = (vocabulary.names().to_vec(), names.names().to_vec());
    Ok(Some(ReadShard { words, labels, written, word_ids, label_ids, lengths }.bytes()))
}

/// What all must know of a shard as it was read.
pub fn summary(shard: &[u8]) -> Result<Vec<u8>> {
    let shard: ReadShard = value(shard)?;
    let ReadShard { words, labels, written, lengths, .. } = shard;
    Ok(Summary { words, labels, written: vec![written], lengths, tokens: vec![shard.word_ids.len()] }.bytes())
}

impl Summary {
    fn merged(parts: Vec<Self>) -> Self {
        let (mut words, mut labels) = (Vocabulary::default(), Vocabulary::default());
        let (mut written, mut lengths, mut tokens) = (Vec::new(), Vec::new(), Vec::new());
        for part in parts {
            part.words.iter().for_each(|word| _ = words.add(word));
            part.labels.iter().for_each(|label| _ = labels.add(label));
            written.extend(part.written);
            lengths.extend(part.lengths);
            tokens.extend(part.tokens);
        }
        written.dedup();
        Self { words: words.names().to_vec(), labels: labels.names().to_vec(), written, lengths, tokens }
    }

    fn shards(&self) -> Vec<Range<usize>> {
        let mut end = 0;
        let range = |&tokens: &usize| {
            end += tokens;
            end - tokens..end
        };
        self.tokens.iter().map(range).collect()
    }

    /// The dataset, without its tokens.
    fn outline(&self, name: &str) -> Result<Dataset> {
        let [written] = self.written[..] else {
            let what = format!("{name}: words or labels are integers in one part and strings in another");
            return Err(Error::mismatch(what, "write them alike"));
        };
        let names = |integers: bool| if integers { Names::Integers } else { Names::Strings };
        let mut offsets = vec![0];
        self.lengths.iter().for_each(|&length| offsets.push(offsets[offsets.len() - 1] + length as usize));
        Ok(Dataset {
            name: name.to_owned(),
            tokens: Tokens::Words { word_ids: Vec::new(), vocabulary: vocabulary(&self.words) },
            labels: Labels::Classes { label_ids: Vec::new(), names: vocabulary(&self.labels) },
            offsets,
            lines: Vec::new(),
            warnings: Vec::new(),
            written: Written { tokens: names(written.0), labels: names(written.1) },
            orderings: Orderings::Given,
        })
    }
}

fn vocabulary(names: &[String]) -> Vocabulary {
    let mut vocabulary = Vocabulary::default();
    names.iter().for_each(|name| _ = vocabulary.add(name));
    vocabulary
}

/// What shards must know of the summary of all to be numbered: the words and the labels.
pub fn names(summary: &[u8]) -> Result<Vec<u8>> {
    let summary: Summary = value(summary)?;
    Ok((summary.words, summary.labels).bytes())
}

/// How many tokens each shard has, and how many sequences, words and labels there are in all.
pub fn counts(summary: &[u8]) -> Result<(Vec<usize>, [usize; 3])> {
    let Summary { words, labels, lengths, tokens, .. } = value(summary)?;
    Ok((tokens, [lengths.len(), words.len(), labels.len()]))
}

/// A shard with the numbers of the whole dataset; `first` is the number of its first token.
pub fn number(shard: &[u8], names: &[u8], first: usize) -> Result<Vec<u8>> {
    let shard: ReadShard = value(shard)?;
    let (words, labels): (Vec<String>, Vec<String>) = value(names)?;
    let numbers = |own: &[String], all: &[String]| -> Option<Vec<u32>> {
        let known: HashMap<&str, u32> = all.iter().map(String::as_str).zip(0..).collect();
        own.iter().map(|name| known.get(name.as_str()).copied()).collect()
    };
    let (Some(words), Some(labels)) = (numbers(&shard.words, &words), numbers(&shard.labels, &labels)) else {
        return Err(Error::mismatch("a word that was not there before", "did a file change meanwhile?"));
    };
    let word_ids = shard.word_ids.iter().map(|&id| words[id as usize]).collect();
    let labels = shard.label_ids.iter().map(|id| id.map(|id| labels[id as usize])).collect();
    Ok(OwnedShard { word_ids, labels, lengths: shard.lengths, first }.bytes())
}

/// Memorizes the shards of an engine, of which all is known that their summary says.
pub fn compile(name: &str, summary: &[u8], engine: &dyn Engine, memorizer: &Memorizer) -> Result<Compiled> {
    let summary: Summary = value(summary)?;
    let mut data = summary.outline(name)?;
    memorizer.check(Method::Gated)?;
    check_mask(&data, &memorizer.mask)?;
    let runner = Remote { engine, shards: summary.shards() };
    if alphabet::is_small(&data) || !fit(memorizer, &data) {
        // What is small is looked at in other ways, all at once.
        let (words, classes) = runner.pass(&SequencePass {}, &data.offsets[..data.sequences()])?;
        if let Tokens::Words { word_ids, .. } = &mut data.tokens {
            *word_ids = words;
        }
        if let Labels::Classes { label_ids, .. } = &mut data.labels {
            *label_ids = classes;
        }
        return memorizer.compile(&data);
    }
    memorize_with(&data, &runner, memorizer)
}
