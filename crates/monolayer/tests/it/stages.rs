//! Memorizing in stages (`effort` fast): the same tokens are possible as in memory, all of them are proved, and nothing depends on how
//! often the data is gone through.

use monolayer::data::positions::Positions;
use monolayer::data::{Labels, ambiguous_corpus};
use monolayer::memorize::{Effort, MEMORY};
use monolayer::{Dataset, Embedding, Mask, Memorizer, Precision};

/// A corpus whose labels depend on neighbors, some of them free and some of them noise.
fn corpus(tokens: usize, seed: u64, free: usize, noise: usize) -> Dataset {
    let mut data = ambiguous_corpus(tokens, seed);
    let Labels::Classes { label_ids, .. } = &mut data.labels else { panic!("classes") };
    for (t, label) in label_ids.iter_mut().enumerate() {
        let number = (t as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        if free > 0 && number.is_multiple_of(free as u64) {
            *label = None;
        } else if noise > 0 && number % noise as u64 == 1 {
            *label = Some((number >> 8) as u32 % 8);
        }
    }
    data
}

fn memorizers() -> Vec<Memorizer<'static>> {
    let fast = || Memorizer::new().effort(Effort::Fast).memory(MEMORY).candidates(32);
    vec![
        fast(),
        fast().precision(Precision::F64).seed(5),
        fast().mask(Mask::Causal),
        fast().mask(Mask::Band(1, 0)).positions(Positions::None),
        fast().start(true).unknown(true),
        fast().free(true),
        fast().embedding(Embedding::Far(32)).positions(Positions::Far(64)).seed(9),
    ]
}

#[test]
fn the_same_tokens_are_possible_and_all_are_proved() {
    for (i, data) in [corpus(4000, 1, 0, 0), corpus(4000, 2, 9, 5), corpus(700, 3, 2, 3)].iter().enumerate() {
        for (j, memorizer) in memorizers().into_iter().enumerate() {
            let staged = memorizer.compile(data).unwrap();
            let other = memorizer.clone().effort(Effort::Default).compile(data).unwrap();
            assert_eq!(staged.impossible(), other.impossible(), "data {i}, settings {j}");
            assert_eq!(staged.free(), other.free());
            assert_eq!(staged.certified(), staged.possible(), "data {i}, settings {j}");
            assert_eq!(staged.right(), staged.possible());
            assert_eq!(staged.model().right(data).unwrap(), Some(staged.possible()), "data {i}, settings {j}");
            let names = staged.names().expect("gated units have names");
            assert_eq!(names.units.len() + staged.spare(), staged.model().config().layers[0].hidden);
        }
    }
}

#[test]
fn memory_changes_nothing() {
    let data = corpus(5000, 4, 7, 4);
    let model = |memory: usize| {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("model");
        Memorizer::new().effort(Effort::Fast).memory(memory).compile(&data).unwrap().save(&out).unwrap();
        ["config.json", "model.safetensors", "certificate.json", "names.json"]
            .map(|name| std::fs::read(out.join(name)).unwrap())
    };
    let whole = model(1 << 30);
    assert!(whole == model(0) && whole == model(10_000));
}

/// Words without a label, words that are always free, one token, no tokens at all in some sequences.
#[test]
fn odd_data() {
    let memorizer = || Memorizer::new().effort(Effort::Fast).memory(MEMORY).embedding(Embedding::Far(64));
    for (tokens, labels) in [
        (vec![vec!["a"]], vec![vec![Some("X")]]),
        (vec![vec!["a"]], vec![vec![None]]),
        (vec![vec!["a", "a"], vec!["a"]], vec![vec![Some("X"), Some("Y")], vec![None]]),
        (
            vec![vec!["a", "b"], vec!["b", "a"], vec!["a", "b"]],
            vec![vec![Some("X"), None], vec![Some("Y"), Some("Z")], vec![Some("Y"), None]],
        ),
    ] {
        let mut text = String::new();
        for (tokens, labels) in tokens.iter().zip(&labels) {
            let list = |items: Vec<String>| format!("[{}]", items.join(","));
            let tokens = list(tokens.iter().map(|t| format!("{t:?}")).collect());
            let labels = list(labels.iter().map(|l| l.map_or("null".to_owned(), |l| format!("{l:?}"))).collect());
            text += &format!("{{\"tokens\":{tokens},\"labels\":{labels}}}\n");
        }
        let data = Dataset::read("odd", monolayer::data::Format::JsonLines, text.as_bytes()).unwrap();
        let staged = memorizer().compile(&data).unwrap();
        assert!(staged.is_proved(), "{text}");
        assert_eq!(staged.model().right(&data).unwrap().unwrap_or(0), staged.possible(), "{text}");
        let other = memorizer().effort(Effort::Default).compile(&data).unwrap();
        assert_eq!(staged.impossible(), other.impossible(), "{text}");
    }
}
