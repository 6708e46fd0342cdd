//! Texts: a model fed one token at a time says what it says of the whole, and what was memorized is recited.

use monolayer::data::{END_OF_TEXT, Labels, Split};
use monolayer::model::{Generator, LabelHead, TokenFeed, Words};
use monolayer::paper::attention::{AttentionKind, Mask};
use monolayer::{AnyModel, Dataset, Matrix, Memorizer, Model, Precision, Predictions, Source, Vocabulary};
use proptest::prelude::*;

use crate::random::{Case, Shape, map};

const WORDS: [&str; 6] = ["a", "b", "c", "é", "", "<unk>"];

/// A model with several layers, heads and kinds of attention, around words.
fn model(positions: bool, kind: AttentionKind, seed: u64) -> Model<f64> {
    let layer = |kind, heads, size, hidden| Shape { attention: Some((kind, Mask::Causal, heads, size)), hidden };
    let alone = Shape { attention: None, hidden: 5 };
    let layers = vec![layer(kind, 2, 3, 7), alone, layer(AttentionKind::Softmax, 1, 1, 0)];
    let (transformer, _) = Case { d: 4, pre: Some(3), layers, lengths: vec![1], vocabulary: 1, seed }.draw();
    let entries = |rows: usize, cols: usize, shift: f64| {
        Matrix::from_fn(rows, cols, |i, j| ((i * 7 + j * 3) as f64 * 1.37 + shift).sin())
    };
    let mut vocabulary = Vocabulary::default();
    WORDS.iter().for_each(|word| _ = vocabulary.add(word));
    Model {
        words: Some(Words { vocabulary, embedding: entries(WORDS.len(), 4, 0.3), start: None }),
        positions: positions.then(|| entries(40, 4, 0.7)),
        head: Some(LabelHead {
            labels: ["a", "b", "c", "é", "X"].map(str::to_owned).to_vec(),
            weight: entries(5, 4, 0.9),
            bias: vec![0.1, 0.0, -0.1, 0.2, 0.05],
        }),
        outputs: None,
        transformer,
        source: Source::default(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn one_token_at_a_time_is_the_whole(
        ids in prop::collection::vec(0..WORDS.len(), 1..40),
        positions: bool,
        hard: bool,
        seed in 0_u64..8,
    ) {
        let kind = if hard { AttentionKind::Hardmax } else { AttentionKind::Softmax };
        let double = model(positions, kind, seed);
        let single = Model {
            words: double.words.as_ref().map(|w| Words {
                vocabulary: w.vocabulary.clone(),
                embedding: w.embedding.map(|&x| x as f32),
                start: w.start,
            }),
            positions: double.positions.as_ref().map(|p| p.map(|&x| x as f32)),
            transformer: map(&double.transformer, |&x| x as f32),
            head: double.head.as_ref().map(|h| LabelHead {
                labels: h.labels.clone(),
                weight: h.weight.map(|&x| x as f32),
                bias: h.bias.iter().map(|&x| x as f32).collect(),
            }),
            outputs: None,
            source: Source::default(),
        };
        let words: Vec<&str> = ids.iter().map(|&i| WORDS[i]).collect();
        let data = Dataset::from_sequences(&[&words], &[vec!["a"; words.len()]]).unwrap();
        for model in [AnyModel::from(double), AnyModel::from(single)] {
            let Predictions::Labels(whole) = model.predict(&data).unwrap() else { panic!("labels") };
            let names = model.label_names().unwrap();
            let mut feed = TokenFeed::new(&model).unwrap();
            for (word, &label) in words.iter().zip(&whole) {
                prop_assert_eq!(feed.step(word).unwrap(), &names[label as usize]);
            }
        }
    }

    /// Whatever the text, reciting goes as far as the first token that no weights get right, and no further.
    #[test]
    fn a_text_is_recited_up_to_what_is_impossible(ids in prop::collection::vec(0_usize..4, 1..30), chars: bool) {
        let (split, words) = if chars { (Split::Char, ["a", "\n", "é", " "]) } else { (Split::Word, ["a", "b", "é", "日本"]) };
        let tokens: Vec<&str> = ids.iter().map(|&i| words[i]).collect();
        let data = Dataset::from_text(&split.joined(&tokens), split).unwrap();
        let compiled = Memorizer::new().text(split).candidates(32).compile(&data).unwrap();
        prop_assert!(compiled.is_proved());
        let mut generator = Generator::new(compiled.model()).unwrap();
        generator.prompt(&compiled.source().text().unwrap().first).unwrap();
        while generator.tokens().len() <= tokens.len() && generator.step().unwrap().is_some() {}
        let right = compiled.impossible().first().map_or(tokens.len(), |&t| t + 1);
        prop_assert_eq!(&generator.tokens()[..right.min(generator.tokens().len())], &tokens[..right]);
        prop_assert_eq!(generator.tokens() == tokens, right == tokens.len() && generator.ended());
    }
}

fn recited(text: &str, split: Split, precision: Precision) -> (String, bool) {
    let data = Dataset::from_text(text, split).unwrap();
    let compiled = Memorizer::new().text(split).precision(precision).compile(&data).unwrap();
    let mut generator = Generator::new(compiled.model()).unwrap();
    generator.prompt(&compiled.source().text().unwrap().first).unwrap();
    while generator.tokens().len() < 1000 && generator.step().unwrap().is_some() {}
    (split.joined(generator.tokens()), generator.ended())
}

#[test]
fn texts_are_recited() {
    let text = "to be or not to be that is the question whether tis nobler in the mind to suffer the slings";
    for precision in [Precision::Auto, Precision::F32, Precision::F64] {
        assert_eq!(recited(text, Split::Word, precision), (text.to_owned(), true));
        assert_eq!(recited(text, Split::Char, precision), (text.to_owned(), true));
    }
    let lines = "\u{feff}Zwölf Boxkämpfer\r\n\tjagen \0 Viktor.\r\n";
    assert_eq!(recited(lines, Split::Char, Precision::Auto), (lines.to_owned(), true));
    assert_eq!(recited("word", Split::Word, Precision::Auto), ("word".to_owned(), true));
}

#[test]
fn what_coincides_is_impossible() {
    let impossible = |text: &str| {
        let data = Dataset::from_text(text, Split::Word).unwrap();
        Memorizer::new().text(Split::Word).compile(&data).unwrap().impossible().to_vec()
    };
    assert_eq!(impossible("a"), [0; 0]);
    // All prefixes look alike, and "a" is what follows most often.
    assert_eq!(impossible("a a a a"), [3]);
    assert_eq!(impossible("a a a b"), [2]);
    // After "A B" and after "A B A B" there is as much of A as of B.
    assert_eq!(impossible("A B A B"), [3]);
    assert_eq!(impossible("A B A C"), [0; 0]);
    assert_eq!(impossible("A B C A B C A B D"), [0; 0]);
}

#[test]
fn only_causal_models_of_words_and_labels_write_texts() {
    let says = |model: AnyModel, what: &str| {
        let error = TokenFeed::new(&model).err().expect("refused").to_string();
        assert!(error.contains(what), "{error}");
    };
    let sees_all = Dataset::from_sequences(&[["a", "b"]], &[["b", "X"]]).unwrap();
    says(Memorizer::new().compile(&sees_all).unwrap().model().clone(), "see those that come later");
    let base = model(false, AttentionKind::Softmax, 1);
    says(Model { head: None, ..base.clone() }.into(), "does not turn words into labels");
    says(Model { words: None, ..base.clone() }.into(), "does not turn words into labels");

    let positions = AnyModel::from(model(true, AttentionKind::Softmax, 1));
    let mut feed = TokenFeed::new(&positions).unwrap();
    (0..40).for_each(|_| assert!(feed.step("a").is_ok()));
    assert_eq!(feed.left(), Some(0));
    assert!(feed.step("a").unwrap_err().to_string().contains("40 positions"));
    // Unknown words have a row here.
    assert!(TokenFeed::new(&base.into()).unwrap().step("zebra").is_ok());
}

#[test]
fn the_end_is_a_label_of_its_own() {
    let data = Dataset::from_text("a b c", Split::Word).unwrap();
    let Labels::Classes { names, .. } = &data.labels else { panic!("classes") };
    assert_eq!(names.names(), ["b", "c", END_OF_TEXT]);
    let compiled = Memorizer::new().text(Split::Word).compile(&data).unwrap();
    let source = compiled.source().json();
    assert_eq!(source["text"], serde_json::json!({"split": "word", "first": "a", "end": END_OF_TEXT}));
    // Models of other data say nothing of a text.
    let other = Memorizer::new().mask(Mask::Causal).compile(&data).unwrap();
    assert!(other.source().json().get("text").is_none());
}
