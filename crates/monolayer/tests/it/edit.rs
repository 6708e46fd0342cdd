//! Edits against programs that add up in any order: no label differs but where difference.json says so.

use monolayer::edit::difference::{Change, Difference};
use monolayer::edit::{Edit, Editor, Outcome, undo};
use monolayer::{AnyModel, Dataset, Memorizer, Model, Precision};
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};

const HARBOR: &str = include_str!("../../../../examples/harbor.conll");

fn harbor() -> Dataset {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("harbor.conll");
    std::fs::write(&file, HARBOR).unwrap();
    Dataset::open(file).unwrap()
}

/// A program: orders in which it adds up. The last number of each is the bias.
struct Order {
    code: Vec<usize>,
    hidden: Vec<usize>,
    output: Vec<usize>,
    random: ChaCha8Rng,
}

impl Order {
    fn new(model: &Model<f32>, seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let hidden = model.transformer.layers[0].feed_forward.as_ref().map_or(0, |block| block.b1.len());
        let mut shuffled = |n: usize| {
            let mut order: Vec<usize> = (0..n).collect();
            if seed > 0 {
                order.shuffle(&mut random);
            }
            order
        };
        let d = model.transformer.d;
        let (code, hidden, output) = (shuffled(d + 1), shuffled(hidden + 2), shuffled(d + 1));
        Self { code, hidden, output, random }
    }

    /// The sum of some terms, of which there are as many as in the order.
    fn sum(order: &[usize], term: impl Fn(usize) -> f32) -> f32 {
        order.iter().fold(0.0, |sum, &i| sum + term(i))
    }
}

/// What the token at a place has: the vector of its word, and of its position.
fn embedded(model: &Model<f32>, word: u32, row: usize) -> Vec<f32> {
    let x = model.words.as_ref().unwrap().embedding.row(word as usize);
    let position = model.positions.as_ref().map(|positions| positions.row(row));
    (0..x.len()).map(|i| x[i] + position.map_or(0.0, |position| position[i])).collect()
}

/// The id that attention reads out for the last of some tokens that are seen, which is the query, in a random order.
fn id(model: &Model<f32>, seen: &[Vec<f32>], query: &[f32], order: &mut Order) -> f32 {
    let head = &model.transformer.layers[0].attention.as_ref().unwrap().heads[0];
    let dot = |w: &[f32], x: &[f32]| Order::sum(&order.code, |i| if i < x.len() { w[i] * x[i] } else { 0.0 });
    let y = dot(&head.w_q.data, query);
    let keys: Vec<f32> = seen.iter().map(|x| dot(&head.w_k.data, x)).collect();
    let values: Vec<f32> = seen.iter().map(|x| dot(&head.w_v.data, x)).collect();
    let top = keys.iter().map(|k| y * k).fold(f32::NEG_INFINITY, f32::max);
    let mut terms: Vec<usize> = (0..seen.len()).collect();
    terms.shuffle(&mut order.random);
    let weight = |i: usize| (y * keys[i] - top).exp();
    let total = terms.iter().fold(0.0, |sum, &i| sum + weight(i));
    terms.shuffle(&mut order.random);
    terms.iter().fold(0.0, |sum, &i| sum + weight(i) * values[i]) / total
}

/// The scores of a token whose attention reads out an id.
fn scores(model: &Model<f32>, x: &[f32], id: f32, order: &Order) -> Vec<f32> {
    let layer = &model.transformer.layers[0];
    let w_o = &layer.attention.as_ref().unwrap().heads[0].w_o.data;
    let h: Vec<f32> = x.iter().zip(w_o).map(|(x, w)| x + w * id).collect();
    let (d, block) = (x.len(), layer.feed_forward.as_ref().unwrap());
    let before = |j: usize| Order::sum(&order.code, |i| if i < d { block.w1.row(j)[i] * h[i] } else { block.b1[j] });
    let hidden: Vec<f32> = (0..block.b1.len()).map(|j| before(j).max(0.0)).collect();
    let q = hidden.len();
    let out = |c: usize| {
        let term = |j: usize| match j {
            j if j < q => block.w2.row(c)[j] * hidden[j],
            j if j == q => block.b2[c],
            _ => h[c],
        };
        Order::sum(&order.hidden, term)
    };
    let out: Vec<f32> = (0..d).map(out).collect();
    let head = model.head.as_ref().unwrap();
    let score =
        |l: usize| Order::sum(&order.output, |i| if i < d { head.weight.row(l)[i] * out[i] } else { head.bias[l] });
    (0..head.bias.len()).map(score).collect()
}

fn arg_max(scores: &[f32]) -> usize {
    (0..scores.len()).fold(0, |best, l| if scores[l] > scores[best] { l } else { best })
}

/// An edited model, and the one before.
struct Pair<'a> {
    old: &'a Model<f32>,
    new: &'a Model<f32>,
    difference: &'a Difference,
}

impl Pair<'_> {
    fn word(&self, word: u32) -> &str {
        self.old.words.as_ref().unwrap().vocabulary.name(word)
    }

    fn changes(&self, word: u32, row: usize) -> impl Iterator<Item = &Change> {
        let (word, row) = (self.word(word), self.old.positions.as_ref().map(|_| row));
        self.difference.changes.iter().filter(move |change| change.word == word && change.place == row)
    }

    /// Fails where scores or labels differ and the difference does not say so; whether the label differs.
    fn check(&self, word: u32, row: usize, id: f32, order: &Order) -> bool {
        let x = embedded(self.old, word, row);
        let [a, b] = [self.old, self.new].map(|model| scores(model, &x, id, order));
        let name = |l: usize| &self.old.head.as_ref().unwrap().labels[l];
        let (from, to) = (name(arg_max(&a)), name(arg_max(&b)));
        if self.changes(word, row).next().is_none() {
            assert_eq!(a, b, "{} at {row}, id {id}", self.word(word));
        }
        let allows = |change: &Change| {
            let inside = change.id[0] <= f64::from(id) && f64::from(id) <= change.id[1];
            inside && change.from.as_ref().is_none_or(|l| l == from) && change.to.as_ref().is_none_or(|l| l == to)
        };
        let allowed = from == to || self.changes(word, row).any(allows);
        assert!(allowed, "{} at {row}, id {id}: {from} -> {to}", self.word(word));
        from != to
    }
}

fn single(model: &AnyModel) -> &Model<f32> {
    let AnyModel::F32(model) = model else { panic!("a model in f32") };
    model
}

/// All sequences, all ids near the ends of the changes and others, in many orders. Gives how many labels changed.
fn attack(pair: &Pair, causal: bool, sequences: usize) -> usize {
    let orders: Vec<u64> = (0..20).collect();
    let words = pair.old.words.as_ref().unwrap().vocabulary.len() as u32;
    let most = pair.old.positions.as_ref().map_or(9, |positions| positions.rows);
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut changed = 0;
    for i in 0..sequences {
        let mut order = Order::new(pair.old, orders[i % orders.len()]);
        let sequence: Vec<u32> = (0..random.random_range(1..=most)).map(|_| random.random_range(0..words)).collect();
        let x: Vec<Vec<f32>> = sequence.iter().enumerate().map(|(k, &w)| embedded(pair.old, w, k)).collect();
        let k = random.random_range(0..sequence.len());
        let id = id(pair.old, if causal { &x[..=k] } else { &x }, &x[k], &mut order);
        changed += usize::from(pair.check(sequence[k], k, id, &order));
    }
    let ids: Vec<f64> = pair.difference.changes.iter().flat_map(|change| change.id).collect();
    let (low, high) = ids.iter().fold((-40.0_f64, 40.0_f64), |(l, h), &id| (l.min(id), h.max(id)));
    for change in &pair.difference.changes {
        let word = pair.old.words.as_ref().unwrap().vocabulary.get(&change.word).unwrap();
        let row = change.place.unwrap_or(0);
        for &seed in &orders {
            let order = Order::new(pair.old, seed);
            let width = (change.id[1] - change.id[0]) as f32;
            for end in change.id.map(|end| end as f32) {
                let near = |scale: f32, random: &mut ChaCha8Rng| end + scale * width * (random.random::<f32>() - 0.5);
                let mut ids: Vec<f32> = (0..30).map(|i| near(2.0_f32.powi(i % 10 - 7), &mut random)).collect();
                ids.extend([end, end.next_up(), end.next_down()]);
                ids.extend((0..20).map(|_| random.random_range(low..high) as f32));
                changed += ids.into_iter().filter(|&id| pair.check(word, row, id, &order)).count();
            }
            let other = (random.random_range(0..words), random.random_range(0..most));
            pair.check(
                other.0,
                if change.place.is_some() { other.1 } else { 0 },
                random.random_range(low..high) as f32,
                &order,
            );
        }
    }
    changed
}

/// Sequences with a word at a place whose ids come nearer and nearer to a target, as the best two words are put at two places, again
/// and again; and the least distance, but for rounding.
fn climb(pair: &Pair, (word, place): (u32, usize), target: f64, random: &mut ChaCha8Rng) -> (Vec<Vec<u32>>, f64) {
    let words = pair.old.words.as_ref().unwrap().vocabulary.len() as u32;
    let head = &pair.old.transformer.layers[0].attention.as_ref().unwrap().heads[0];
    let read = |weights: &[f32], w: u32, k: usize| {
        weights.iter().zip(embedded(pair.old, w, k)).map(|(a, b)| f64::from(*a) * f64::from(b)).sum::<f64>()
    };
    let query = read(&head.w_q.data, word, place);
    // What a word at a place adds to the sum of weights, and to that of weighted values.
    let part = |w: u32, k: usize| {
        let weight = (query * read(&head.w_k.data, w, k)).exp();
        (weight, weight * read(&head.w_v.data, w, k))
    };
    let length = random.random_range(place.max(3) + 1..=pair.old.positions.as_ref().unwrap().rows);
    let mut best: Vec<u32> = (0..length).map(|_| random.random_range(0..words)).collect();
    best[place] = word;
    let (mut met, mut least) = (vec![best.clone()], f64::INFINITY);
    for _ in 0..8 {
        let mut places: Vec<usize> = (0..length).filter(|&k| k != place).collect();
        places.shuffle(random);
        let others = (0..length).filter(|k| !places[..2].contains(k)).map(|k| part(best[k], k));
        let rest = others.fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
        let [a, b] = [places[0], places[1]].map(|k| (0..words).map(|w| part(w, k)).collect::<Vec<_>>());
        for (i, j) in (0..a.len()).flat_map(|i| (0..b.len()).map(move |j| (i, j))) {
            let distance = ((rest.1 + a[i].1 + b[j].1) / (rest.0 + a[i].0 + b[j].0) - target).abs();
            if distance < least {
                least = distance;
                (best[places[0]], best[places[1]]) = (i as u32, j as u32);
                met.push(best.clone());
            }
        }
    }
    (met, least)
}

/// Sequences whose ids come near the ends of the intervals, in all orders: no output differs but where it is stated. Gives how many labels
/// changed.
fn attack_by_sequences(pair: &Pair) -> usize {
    let mut random = ChaCha8Rng::seed_from_u64(2);
    let (mut changed, mut targets, mut near) = (0, 0, 0);
    for change in &pair.difference.changes {
        let word = pair.old.words.as_ref().unwrap().vocabulary.get(&change.word).unwrap();
        let place = change.place.unwrap();
        for target in [change.id[0], change.id[1], 0.5 * change.id[0] + 0.5 * change.id[1]] {
            let climbs: Vec<_> = (0..4).map(|_| climb(pair, (word, place), target, &mut random)).collect();
            let (met, distance) = climbs.into_iter().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
            targets += 1;
            near += usize::from(distance < change.id[1] - change.id[0]);
            for (sequence, seed) in met.iter().rev().take(3).flat_map(|s| (0..20).map(move |seed| (s, seed))) {
                let mut order = Order::new(pair.old, seed);
                let x: Vec<Vec<f32>> = sequence.iter().enumerate().map(|(k, &w)| embedded(pair.old, w, k)).collect();
                for (k, &word) in sequence.iter().enumerate() {
                    let id = id(pair.old, &x, &x[k], &mut order);
                    changed += usize::from(pair.check(word, k, id, &order));
                }
            }
        }
    }
    // The adversary comes near: mostly to within the width of an interval.
    assert!(2 * near > targets, "{near} of {targets}");
    changed
}

fn sentence(text: &str, token: usize, label: &str) -> Edit {
    Edit::new(text.split(' '), token - 1, label)
}

#[test]
fn nothing_differs_but_what_is_stated() {
    let data = harbor();
    let compiled = Memorizer::new().precision(Precision::F32).compile(&data).unwrap();
    let editor = Editor::new(compiled.model().clone(), Some(&data)).unwrap();
    // Several words, and several contexts of one word at one place with one label and with others.
    let edits = [
        sentence("May sails in May .", 1, "DATE"),
        sentence("May sails in May .", 4, "PER"),
        sentence("Hope left the harbor in June .", 1, "PER"),
        sentence("May sails in June .", 1, "BOAT"),
        sentence("May left the harbor in June .", 1, "BOAT"),
        sentence("May left the harbor .", 1, "O"),
        sentence("May sails .", 1, "BOAT"),
    ];
    let edited = editor.edit(&edits).unwrap();
    assert!(edited.outcomes().iter().all(|o| matches!(o, Outcome::Made { .. })), "{:?}", edited.outcomes());
    let pair = Pair { old: single(editor.model()), new: single(edited.model()), difference: edited.difference() };
    assert!(attack(&pair, false, 10_000) > 0);
    assert!(attack_by_sequences(&pair) > 0);
    // The edits came about, and no other token of the data changed.
    let asked = |t: usize| {
        let range = data.range(data.location(t).sequence.unwrap() - 1);
        let words: Vec<&str> = range.clone().map(|t| data.word(t).unwrap()).collect();
        edits.iter().find(|e| e.tokens == words && e.place == t - range.start).map(|e| e.label.as_str())
    };
    let labels = |model: &AnyModel| match model.predict(&data).unwrap() {
        monolayer::Predictions::Labels(labels) => labels,
        monolayer::Predictions::Outputs(_) => panic!("labels"),
    };
    let names = editor.model().label_names().unwrap();
    for (t, (before, after)) in labels(editor.model()).into_iter().zip(labels(edited.model())).enumerate() {
        assert_eq!(names[after as usize], asked(t).unwrap_or(&names[before as usize]), "{}", data.location(t));
    }
}

/// More labels than coordinates: units that lift one label move the others, too.
#[test]
fn texts_with_many_labels() {
    let text = include_str!("../../../../LICENSE-MIT");
    let data = Dataset::from_text(text, monolayer::data::Split::Word).unwrap();
    let memorizer = Memorizer::new().text(monolayer::data::Split::Word).precision(Precision::F32);
    let compiled = memorizer.compile(&data).unwrap();
    let editor = Editor::new(compiled.model().clone(), None).unwrap();
    let edits =
        [sentence("Permission is hereby", 2, "the"), sentence("free of", 1, "and"), sentence("of of", 2, "free")];
    let edited = editor.edit(&edits).unwrap();
    assert!(edited.outcomes().iter().all(|o| matches!(o, Outcome::Made { .. })), "{:?}", edited.outcomes());
    let pair = Pair { old: single(editor.model()), new: single(edited.model()), difference: edited.difference() };
    assert!(attack(&pair, true, 300) > 0);
}

#[test]
fn what_was_edited_can_be_taken_back() {
    let data = harbor();
    for (spare, storage) in [
        (64, monolayer::model::Storage::Auto),
        (2, monolayer::model::Storage::Small),
        (0, monolayer::model::Storage::Sparse),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let [before, after, back] = ["before", "after", "back"].map(|name| dir.path().join(name));
        let compiled = Memorizer::new().spare(spare).storage(storage).compile(&data).unwrap();
        assert_eq!(compiled.spare(), spare);
        compiled.save(&before).unwrap();
        let editor = Editor::new(AnyModel::open(&before).unwrap(), Some(&data)).unwrap();
        let edited = editor
            .edit(&[sentence("May sails in May .", 1, "DATE"), sentence("May sails in May .", 3, "PER")])
            .unwrap();
        edited.save(&before, &after).unwrap();
        assert_eq!(&AnyModel::open(&after).unwrap(), edited.model());
        undo(&after, &back).unwrap();
        for file in ["config.json", "model.safetensors", "vocabulary.json"] {
            assert_eq!(std::fs::read(before.join(file)).unwrap(), std::fs::read(back.join(file)).unwrap(), "{file}");
        }
        // A difference of other files takes nothing back.
        std::fs::copy(before.join("model.safetensors"), after.join("model.safetensors")).unwrap();
        assert!(undo(&after, dir.path().join("again")).is_err());
    }
}

#[test]
fn what_cannot_be_edited_is_refused() {
    let data = harbor();
    let editor = Editor::new(Memorizer::new().compile(&data).unwrap().model().clone(), Some(&data)).unwrap();
    let error = |edits: &[Edit]| editor.edit(edits).unwrap_err().to_string();
    assert!(error(&[sentence("May sails in May .", 1, "X")]).contains("no label"));
    assert!(error(&[sentence("May sails in May .", 6, "O")]).contains("token 6 of 5"));
    assert!(error(&[sentence("Zeppelin sails in May .", 1, "O")]).contains("does not know the word"));
    assert!(
        error(&[sentence("May sails in May .", 1, "O"), sentence("May sails in May .", 1, "PER")])
            .contains("two labels")
    );
    let long = vec!["May"; 100].join(" ");
    assert!(error(&[sentence(&long, 1, "O")]).contains("100 tokens"));
    let mark = data.range(33).map(|t| data.word(t).unwrap().to_owned()).collect::<Vec<_>>();
    assert!(error(&[Edit::new(mark, 0, "O")]).contains("several labels"));
    let vectors = Dataset::from_vectors(&[[[0.5], [2.0]]], &[[[1.0], [-1.0]]]).unwrap();
    let model = Memorizer::new().compile(&vectors).unwrap().model().clone();
    assert!(Editor::new(model, None).is_err_and(|e| e.to_string().contains("vectors")));
}

/// Random sentences over a few words.
fn random_data(random: &mut ChaCha8Rng, sequences: usize, words: usize) -> (Vec<Vec<String>>, Vec<Vec<String>>) {
    let sequence = |i: usize| {
        let length = random.random_range(1..6);
        // A word of its own for some, which is to be kept even where it is forgotten.
        let word =
            |k: usize, r: usize| if i.is_multiple_of(7) && k == 0 { format!("w{}", 100 + i) } else { format!("w{r}") };
        let tokens: Vec<String> = (0..length).map(|k| word(k, random.random_range(0..words))).collect();
        let labels: Vec<String> = tokens.iter().map(|_| format!("L{}", random.random_range(0..4))).collect();
        (tokens, labels)
    };
    (0..sequences).map(sequence).unzip()
}

#[test]
fn forgetting_is_as_never_having_seen() {
    for seed in 0..12 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let (tokens, labels) = random_data(&mut random, 30, 40);
        let data = Dataset::from_sequences(&tokens, &labels).unwrap();
        let mut memorizer = Memorizer::new().seed(seed).start(seed % 3 == 1).unknown(seed % 4 == 1).candidates(8);
        if seed % 4 == 2 {
            memorizer = memorizer.mask(monolayer::Mask::Causal).embedding(monolayer::Embedding::Sign(32));
        }
        let model = memorizer.compile(&data).unwrap().model().clone();
        let forget: Vec<bool> = tokens.iter().map(|_| random.random_range(0..4) == 0).collect();
        let gone: Vec<&Vec<String>> = tokens.iter().zip(&forget).filter(|(_, f)| **f).map(|(t, _)| t).collect();
        if gone.is_empty() {
            continue;
        }
        let secret = Dataset::from_sequences(&gone, &gone).unwrap();
        let forgotten = monolayer::edit::Forget::new(&data, &secret).from(&model).unwrap();
        let rest: Vec<usize> = (0..tokens.len()).filter(|&i| !gone.contains(&&tokens[i])).collect();
        let pick = |list: &[Vec<String>]| rest.iter().map(|&i| list[i].clone()).collect::<Vec<_>>();
        let rest = Dataset::from_sequences(&pick(&tokens), &pick(&labels)).unwrap();
        let never = Memorizer::new().like(&model).unwrap().compile(&rest).unwrap();
        assert_eq!(forgotten.compiled.model(), never.model());
        assert_eq!(forgotten.compiled.model().vocabulary(), model.vocabulary());
        assert_eq!(forgotten.compiled.model().label_names(), model.label_names());
        assert_eq!(forgotten.compiled.model().right(&rest).unwrap(), Some(never.possible()));
        let dir = tempfile::tempdir().unwrap();
        forgotten.compiled.save(dir.path().join("a")).unwrap();
        never.save(dir.path().join("b")).unwrap();
        let bytes = |name: &str| std::fs::read(dir.path().join(name).join("model.safetensors")).unwrap();
        assert_eq!(bytes("a"), bytes("b"));
        // The same data again gives the same coordinates, and all labels.
        let again = Memorizer::new().like(&model).unwrap().compile(&data).unwrap();
        assert!(again.is_proved());
        // What was never there cannot be forgotten.
        let other = Dataset::from_sequences(&[["w1", "w2", "w3", "w1", "w2", "w3", "w1"]], &[["L0"; 7]]).unwrap();
        assert!(monolayer::edit::Forget::new(&data, &other).from(&model).is_err());
    }
}

#[test]
fn new_sequences_and_new_words() {
    let data = harbor();
    let model = Memorizer::new().precision(Precision::F32).compile(&data).unwrap().model().clone();
    let new = Dataset::from_sequences(
        &[vec!["Zeppelin", "sails", "in", "May", "."], vec!["Zeppelin", "left", "Narvik", "."]],
        &[vec!["BOAT", "O", "O", "DATE", "O"], vec!["BOAT", "O", "LOC", "O"]],
    )
    .unwrap();
    let (editor, edits) = Editor::adding(model.clone(), Some(&data), &new).unwrap();
    assert_eq!((editor.words_added(), edits.len()), (2, 9));
    let edited = editor.edit(&edits).unwrap();
    assert_eq!(edited.refused().count(), 0);
    assert_eq!(edited.model().right(&new).unwrap(), Some(9));
    assert_eq!(edited.model().right(&data).unwrap(), model.right(&data).unwrap());
    assert!(edited.difference().changes.iter().all(|change| model.vocabulary().unwrap().get(&change.word).is_some()));
    let pair = Pair { old: single(&model), new: single(edited.model()), difference: edited.difference() };
    attack(&pair, false, 200);
}
