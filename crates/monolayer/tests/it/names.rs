//! names.json: each unit fires exactly where its name says, on every token of the data.

use std::collections::{BTreeMap, HashMap};

use monolayer::arithmetic::kernels::Real;
use monolayer::data::{Split, Tokens};
use monolayer::model::explain::Trace;
use monolayer::model::names::{Coordinate, Firing, UnitKind};
use monolayer::{AnyModel, Compiled, Dataset, Memorizer, Model, ModelNames};
use rayon::prelude::*;

/// The units that fire for the tokens of each word, or for any.
type ByWord<'a> = HashMap<Option<&'a str>, Vec<(usize, &'a Firing)>>;

fn by_word(names: &ModelNames) -> ByWord<'_> {
    let mut all = ByWord::new();
    for named in &names.units {
        for firing in &named.fires {
            all.entry(firing.word.as_deref()).or_default().push((named.unit, firing));
        }
    }
    all
}

/// Compares names with what a model does with every token; how often a unit fires.
fn compare<R: Real>(model: &Model<R>, names: &ModelNames, data: &Dataset) -> usize {
    let Tokens::Words { word_ids, vocabulary } = &data.tokens else { panic!("words") };
    let (by_word, first) = (by_word(names), usize::from(model.start().is_some()));
    let of_sequence = |(i, range): (usize, std::ops::Range<usize>)| {
        let traces = model.trace(data, i).unwrap();
        let mut count = 0;
        for (place, (t, trace)) in range.zip(traces).enumerate() {
            let (word, id) = (vocabulary.name(word_ids[t]), trace.id.unwrap());
            let candidates = [Some(word), None].into_iter().filter_map(|word| by_word.get(&word)).flatten();
            let mut said: Vec<usize> =
                candidates.filter(|(_, firing)| firing.holds(word, first + place, id)).map(|&(unit, _)| unit).collect();
            said.sort_unstable();
            let fires: Vec<usize> = trace.firing.iter().map(|&(unit, _)| unit).collect();
            assert_eq!(said, fires, "sequence {i}, place {place}, {word:?}, id {id}");
            compare_scores(model, names, (word, first + place), &trace);
            count += fires.len();
        }
        count
    };
    data.ranges().enumerate().collect::<Vec<_>>().into_par_iter().map(of_sequence).sum()
}

/// Names say what the units that fire add to scores: together with the head's bias, and what the word carries, the scores, up to
/// the rounding of sums with terms of these sizes.
fn compare_scores<R: Real>(model: &Model<R>, names: &ModelNames, (word, place): (&str, usize), trace: &Trace) {
    let (head, words) = (model.head.as_ref().unwrap(), model.words.as_ref().unwrap());
    let layer = &model.transformer.layers[0];
    let w_o = &layer.attention.as_ref().unwrap().heads[0].w_o.data;
    let (row, id) = (words.embedding.row(words.vocabulary.get(word).unwrap() as usize), trace.id.unwrap());
    let token = |i: usize| row[i].to_f64() + model.positions.as_ref().map_or(0.0, |p| p.row(place)[i].to_f64());
    // Sums of a unit's terms, of a coordinate's units, and of a label's coordinates.
    let roundings = 2 * (model.transformer.d + trace.firing.len() + 4);
    for (l, label) in head.labels.iter().enumerate() {
        let carried = head.weight.row(l).iter().zip(row).map(|(w, x)| w.to_f64() * x.to_f64());
        let mut score = head.bias[l].to_f64() + carried.sum::<f64>();
        let (mut sizes, mut left_out) = (score.abs(), 0.0);
        for &(unit, value) in &trace.firing {
            let named = &names.units[unit];
            let firing = named.fires.iter().find(|firing| firing.holds(word, place, id)).unwrap();
            let block = layer.feed_forward.as_ref().unwrap();
            let (weights, bias) = (block.w1.row(unit), block.b1[unit].to_f64());
            let slope: f64 = weights.iter().zip(w_o).map(|(w, o)| w.to_f64() * o.to_f64()).sum();
            let bound = firing.id_above.or(firing.id_below);
            let beyond = bound.map_or(value, |bound| (id - bound).abs());
            if let Some([least, most]) = named.activation {
                assert!((least..=most).contains(&value), "{value} {least} {most}");
            }
            let (adds, others) = (named.adds.get(label), named.adds_others.unwrap_or(0.0));
            let gate: f64 = weights.iter().enumerate().map(|(i, w)| (w.to_f64() * token(i)).abs()).sum();
            score += adds.unwrap_or(&0.0) * beyond;
            let written = head.weight.row(l).iter().zip(block.w2.iter_rows());
            let output: f64 = written.map(|(h, row)| (h.to_f64() * row[unit].to_f64()).abs()).sum();
            sizes += output * (gate + bias.abs() + (slope * id).abs());
            // What is not listed is known up to its size.
            left_out += if adds.is_none() { others * beyond } else { 0.0 };
        }
        let error = roundings as f64 * R::UNIT_ROUNDOFF.to_f64() * sizes + left_out;
        assert!((score - trace.scores[l]).abs() <= error, "{word} {label}: {score} {} {error}", trace.scores[l]);
    }
}

/// Compiles, saves, reads back and compares; how many units there are of each kind.
fn check(memorizer: &Memorizer, data: &Dataset) -> ([usize; 3], Compiled) {
    let compiled = memorizer.compile(data).unwrap();
    let place = tempfile::tempdir().unwrap();
    compiled.save(place.path().join("model")).unwrap();
    let names = ModelNames::open(place.path().join("model")).unwrap().unwrap();
    assert_eq!(Some(&names), compiled.names());
    let fired = match compiled.model() {
        AnyModel::F32(model) => compare(model, &names, data),
        AnyModel::F64(model) => compare(model, &names, data),
        AnyModel::Exact(_) => panic!("floats"),
    };
    assert_eq!(names.units.len(), compiled.model().config().layers[0].hidden - compiled.spare());
    assert!(names.units.is_empty() || fired > 0);
    let count = |kind| names.units.iter().filter(|unit| unit.kind == kind).count();
    ([UnitKind::Word, UnitKind::Place, UnitKind::Context].map(count), compiled)
}

#[test]
fn units_fire_where_their_names_say() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/harbor.conll");
    let (counts, compiled) = check(&Memorizer::new(), &Dataset::open(corpus).unwrap());
    // The compiler counts units by what they are for; here they are counted by what they read.
    assert_eq!(counts, compiled.gated().unwrap().units);
    for task in ["sort:alphabet=3,length=1..4", "histogram:alphabet=3,length=1..5", "reverse:alphabet=2,length=1..5"] {
        check(&Memorizer::new(), &Dataset::open(format!("task:{task}")).unwrap());
    }
    for start in [false, true] {
        let signs = Memorizer::new().positions("sign:16".parse().unwrap()).embedding("sign:24".parse().unwrap());
        check(&signs.start(start), &Dataset::open("task:sort:alphabet=3,length=1..4").unwrap());
    }
    let license = include_str!("../../../../LICENSE-MIT");
    let text = Dataset::from_text(license, Split::Word).unwrap();
    let (_, compiled) = check(&Memorizer::new().text(Split::Word), &text);
    // More labels than coordinates: what is added to most of them is left out.
    assert!(compiled.names().unwrap().units.iter().any(|unit| unit.adds_others.is_some()));
}

/// Every kind of task, named to the last coordinate and unit.
#[test]
fn models_of_all_tasks_have_names() {
    let kinds = "copy reverse shift shift-2 sort histogram majority parity count length first-occurrence frac-prevs pattern pattern-3 dyck";
    for kind in kinds.split(' ') {
        let letters = match kind {
            "pattern-3" => 3,
            _ => 2,
        };
        let task = format!("task:{kind}:alphabet={letters},length=1..4");
        let (_, compiled) = check(&Memorizer::new().candidates(64), &Dataset::open(&task).unwrap());
        let names = compiled.names().unwrap();
        assert_eq!(names.coordinates.len(), compiled.model().config().d, "{task}");
        assert!(names.coordinates.contains(&Coordinate::ContextId), "{task}");
        assert!(names.units.iter().enumerate().all(|(j, named)| named.unit == j), "{task}");
    }
    let unknown = Dataset::open("task:nothing:alphabet=2,length=1..4").unwrap_err().to_string();
    let listed = |kind: &str| unknown.contains(kind);
    assert!(kinds.split(' ').all(listed), "{unknown}");
}

#[test]
#[ignore = "slow: the corpus"]
fn units_fire_where_their_names_say_on_the_corpus() {
    let Some(dir) = std::env::var_os("MONOLAYER_CONLL") else {
        eprintln!("SKIPPED: set MONOLAYER_CONLL to a directory with eng.train");
        return;
    };
    let data = Dataset::open(std::path::Path::new(&dir).join("eng.train").to_str().unwrap()).unwrap();
    let (counts, compiled) = check(&Memorizer::new(), &data);
    assert_eq!(counts, compiled.gated().unwrap().units);
}

/// Units written by hand come back as they were, in the compact form and in the long one.
#[test]
fn both_forms_are_read() {
    let place = tempfile::tempdir().unwrap();
    let write = |text: &str| std::fs::write(place.path().join("names.json"), text).unwrap();
    let file = |units: &str| {
        format!(
            r#"{{"format": "monolayer-names/1", "ids": [-1, 2.5], "more": 1, "coordinates": [
{{"kind":"word code","word":"a"}},{{"kind":"position code"}},{{"kind":"context id"}},{{"kind":"label","label":"X"}}],
"units": [{units}]}}"#
        )
    };
    write(&file(
        r#"{"unit":0,"kind":"context","words":["a","b"],"place":3,"id_above":0.5,"adds":{"X":-4.25}},
{"unit":1,"kind":"context","fires":[{"word":"a","place":0,"id_below":1},{"word":"b","place":1,"id_below":2}],"adds":{}},
{"unit":2,"kind":"context","id_above":1,"adds":{"X":1}},
{"unit":3,"kind":"word","words":[],"adds":{"X":1},"adds_others":0.5}"#,
    ));
    let names = ModelNames::open(place.path()).unwrap().unwrap();
    assert_eq!(names.coordinates[0], Coordinate::WordCode { word: Some("a".to_owned()) });
    let holds = |unit: usize, word: &str, place: usize, id: f64| {
        names.units[unit].fires.iter().any(|firing| firing.holds(word, place, id))
    };
    assert!(holds(0, "b", 3, 0.6) && !holds(0, "b", 3, 0.5) && !holds(0, "b", 2, 0.6) && !holds(0, "c", 3, 0.6));
    assert!(holds(1, "b", 1, 1.5) && !holds(1, "a", 0, 1.5) && holds(1, "a", 0, 0.5) && !holds(1, "b", 0, 0.5));
    assert!(holds(2, "any", 9, 1.1) && !holds(2, "any", 9, 0.9));
    assert_eq!((names.units[3].fires.len(), names.units[3].adds_others), (0, Some(0.5)));
    assert_eq!(names.units[0].adds, BTreeMap::from([("X".to_owned(), -4.25)]));
    let again: ModelNames = serde_json::from_str(&serde_json::to_string(&names).unwrap()).unwrap();
    assert_eq!(again, names);
    for bad in [file("").replace("names/1", "names/2"), file(r#"{"unit":0}"#), file("") + "x", "[]".to_owned()] {
        write(&bad);
        assert!(ModelNames::open(place.path()).is_err(), "{bad}");
    }
    assert!(ModelNames::open(place.path().join("elsewhere")).unwrap().is_none());
}
