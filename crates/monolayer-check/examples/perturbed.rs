//! A compiled CoNLL-2003 model with one weight changed, as a user would meet it: in its files.
//!
//! Where the compiler's own forward pass says that a label changed, the checker must refute the model. Where the bias of a label
//! is set to the very number at which a token's label turns, so that the next float decides otherwise, the checker must not verify
//! the model beyond it, and the model before it only where the label holds with the hidden units in any order: where every sum is
//! exact, one float may decide. The corpus is read from the directory `MONOLAYER_CONLL`:
//! `cargo run --release -p monolayer-check --example perturbed -- --changes 100 --ties 100`

#[allow(dead_code)]
#[path = "soundness/random.rs"]
mod random;

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use monolayer::arithmetic::matrix::Matrix;
use monolayer::model::{AnyModel, Predictions};
use monolayer::{Dataset, Model};
use monolayer::{Memorizer, Precision};
use monolayer_check::{Options, Verdict, verify};
use random::Random;
use serde_json::Value;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let value = |name: &str| {
        arguments.iter().position(|a| a == name).map_or(100, |i| arguments[i + 1].parse::<usize>().expect("a number"))
    };
    let Some(corpus) = std::env::var_os("MONOLAYER_CONLL") else {
        eprintln!("MONOLAYER_CONLL is not set: it should be the directory with eng.train of CoNLL-2003");
        std::process::exit(2);
    };
    let file = PathBuf::from(corpus).join("eng.train");
    let dir = tempfile::tempdir().expect("a temporary directory");
    let data = Dataset::open(file.to_str().expect("a path in UTF-8")).expect("the corpus");
    let memorizer = Memorizer::new().precision(Precision::F32);
    let compiled = memorizer.compile(&data).expect("it compiles");
    compiled.save(dir.path().join("model")).expect("it can be written");
    let mut bench = Bench { weights: Weights::read(dir.path()), dir: dir.path(), file: &file, data, random: Random(5) };
    let changed = bench.changes(value("--changes"));
    let ties = bench.ties(value("--ties"));
    std::process::exit(i32::from(!(changed && ties)));
}

/// The tensors of a model file of 32-bit floats.
struct Weights {
    bytes: Vec<u8>,
    tensors: Vec<(String, Range<usize>)>,
}

impl Weights {
    fn read(dir: &Path) -> Self {
        let bytes = fs::read(dir.join("model/model.safetensors")).expect("a model");
        let start = 8 + u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")) as usize;
        let header: Value = serde_json::from_slice(&bytes[8..start]).expect("a header");
        let at = |tensor: &Value, i: usize| start + tensor["data_offsets"][i].as_u64().expect("an offset") as usize;
        let named = header.as_object().expect("tensors").iter().filter(|(name, _)| *name != "__metadata__");
        let tensors = named.map(|(name, tensor)| (name.clone(), at(tensor, 0)..at(tensor, 1))).collect();
        Self { bytes, tensors }
    }

    fn get(&self, at: usize) -> f32 {
        f32::from_le_bytes(self.bytes[at..at + 4].try_into().expect("four bytes"))
    }

    /// Writes the model with one weight replaced.
    fn write(&self, dir: &Path, at: usize, x: f32) {
        let mut bytes = self.bytes.clone();
        bytes[at..at + 4].copy_from_slice(&x.to_le_bytes());
        fs::write(dir.join("model/model.safetensors"), bytes).expect("it can be written");
    }
}

struct Bench<'a> {
    weights: Weights,
    dir: &'a Path,
    file: &'a Path,
    data: Dataset,
    random: Random,
}

impl Bench<'_> {
    fn open(&self) -> Model<f32> {
        let AnyModel::F32(model) = AnyModel::open(self.dir.join("model")).expect("a model") else { unreachable!() };
        model
    }

    fn verdict(&self, file: &Path) -> Verdict {
        let options = Options { first: true, ignore_certificate: true, ..Options::default() };
        verify(&self.dir.join("model"), file.to_str(), &options).verdict
    }

    /// Changes one weight until that many changes made a label wrong; all of these must be refuted.
    fn changes(&mut self, wanted: usize) -> bool {
        let honest = right(&self.open(), &self.data);
        let (mut wrong, mut refuted, mut tried) = (0, 0, 0);
        while wrong < wanted {
            tried += 1;
            let (name, range) = &self.weights.tensors[self.random.below(self.weights.tensors.len())];
            let at = range.start + 4 * self.random.below(range.len() / 4);
            let x = self.weights.get(at);
            let y = [-x, x + 1.0, 2.0 * x + 0.5, x - 3.0, x.next_up()][self.random.below(5)];
            self.weights.write(self.dir, at, y);
            let broken =
                right(&self.open(), &self.data).iter().zip(&honest).filter(|(now, before)| **before && !**now).count();
            if broken > 0 {
                wrong += 1;
                let verdict = self.verdict(self.file);
                refuted += usize::from(verdict == Verdict::Refuted);
                println!("{name}: {x} to {y}, {broken} labels: {}", verdict.name());
            }
        }
        println!("{refuted} of {wrong} changes that make a label wrong are refuted ({tried} weights were changed)");
        refuted == wrong
    }

    /// Sets a label's bias to where the label of a token turns. Beyond it nothing may be verified; before it only what holds in
    /// any order of summation.
    fn ties(&mut self, wanted: usize) -> bool {
        let (_, bias) = self.weights.tensors.iter().find(|(name, _)| name == "head.bias").expect("a head").clone();
        self.weights.write(self.dir, bias.start, self.weights.get(bias.start));
        let honest = self.open();
        let one = self.dir.join("one.conll");
        let (mut found, mut before, mut wrongly) = (0, 0, 0);
        while found < wanted {
            let range = self.data.range(self.random.below(self.data.sequences()));
            let (token, label) = (self.random.below(range.len()), self.random.below(bias.len() / 4));
            let line = |t| format!("{} {}\n", self.data.word(t).expect("words"), self.data.label(t).expect("labels"));
            fs::write(&one, range.map(line).collect::<String>()).expect("it can be written");
            let data = Dataset::open(one.to_str().expect("a path in UTF-8")).expect("a sequence");
            let holds = |x: f32| {
                let mut model = honest.clone();
                model.head.as_mut().expect("a head").bias[label] = x;
                right(&model, &data)[token]
            };
            let at = bias.start + 4 * label;
            let (mut low, mut high) = (self.weights.get(at), self.weights.get(at) + 64.0);
            if !holds(low) || holds(high) {
                continue;
            }
            while low.next_up() < high {
                let middle = f32::midpoint(low, high);
                if holds(middle) { low = middle } else { high = middle }
            }
            found += 1;
            self.weights.write(self.dir, at, high);
            wrongly += usize::from(self.verdict(&one) == Verdict::Verified);
            self.weights.write(self.dir, at, low);
            if self.verdict(&one) == Verdict::Verified {
                before += 1;
                let model = self.open();
                let orders = (0..20).all(|_| right(&shuffled(&model, &mut self.random), &data)[token]);
                wrongly += usize::from(!orders);
            }
        }
        println!(
            "{wrongly} of {} models at a rounding-level tie are wrongly verified; {before} are verified one float before it, and hold in 20 orders",
            2 * found
        );
        wrongly == 0
    }
}

/// The same model with its hidden units in another order.
fn shuffled(model: &Model<f32>, random: &mut Random) -> Model<f32> {
    let mut model = model.clone();
    for block in model.transformer.layers.iter_mut().filter_map(|layer| layer.feed_forward.as_mut()) {
        let mut order: Vec<usize> = (0..block.b1.len()).collect();
        (1..order.len()).rev().for_each(|i| order.swap(i, random.below(i + 1)));
        block.w1 = Matrix::from_fn(block.w1.rows, block.w1.cols, |i, j| block.w1.row(order[i])[j]);
        block.b1 = order.iter().map(|&i| block.b1[i]).collect();
        block.w2 = Matrix::from_fn(block.w2.rows, block.w2.cols, |i, j| block.w2.row(i)[order[j]]);
    }
    model
}

/// Which tokens a model gets right.
fn right(model: &Model<f32>, data: &Dataset) -> Vec<bool> {
    let names = &model.head.as_ref().expect("a head").labels;
    let Predictions::Labels(found) = model.predict(data).expect("it runs") else { unreachable!() };
    found.iter().enumerate().map(|(t, &label)| data.label(t) == Some(&names[label as usize])).collect()
}
