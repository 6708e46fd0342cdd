//! A model as an ONNX graph, for onnxruntime and other engines.
//!
//! Inputs are `input_ids` [batch, n] (or `inputs` [batch, n, d] where tokens are vectors) and `attention_mask` [batch, n], 0 on
//! padding, on either side; batch and n may be anything. The output is `logits` [batch, n, labels], or `outputs`. The start token
//! is put before every sequence by the graph itself. Attention weights, context ids and hidden units have names:
//! `layers.0.attention.pattern`, `layers.0.attention.context`, `layers.0.feed_forward.units`.

mod protobuf;

use protobuf::{Attribute, ElementType, Length, Message, node, tensor, value};

use super::{Model, directory};
use crate::arithmetic::kernels::Real;
use crate::paper::attention::{Attention, AttentionKind, Mask};

/// The version of ONNX's operators, and of its files.
const OPERATORS: i64 = 17;
const FILE_VERSION: i64 = 8;

/// The bytes of an ONNX file.
pub fn onnx<R: Real>(model: &Model<R>) -> Vec<u8> {
    let mut graph = Graph::new(model);
    let input = graph.inputs();
    let output = graph.layers(input);
    let (outputs, name) = graph.finish(output);
    let Graph { nodes, tensors, d, kind, .. } = graph;
    let of_tokens = [Length::Any("batch"), Length::Any("n")];
    let tokens = if model.words.is_some() {
        value("input_ids", ElementType::I64, &of_tokens)
    } else {
        value("inputs", kind, &[of_tokens[0], of_tokens[1], Length::Is(d)])
    };
    let graph = Message::default()
        .each(nodes, |m, node| m.message(1, &node))
        .text(2, "monolayer")
        .each(tensors, |m, tensor| m.message(5, &tensor))
        .message(11, &tokens)
        .message(11, &value("attention_mask", ElementType::I64, &of_tokens))
        .message(12, &value(name, kind, &[of_tokens[0], of_tokens[1], Length::Is(outputs)]));
    Message::default()
        .int(1, FILE_VERSION)
        .text(2, "monolayer")
        .text(3, env!("CARGO_PKG_VERSION"))
        .message(7, &graph)
        .message(8, &Message::default().text(1, "").int(2, OPERATORS))
        .bytes()
}

/// Names of values of the graph.
type Name = String;

/// What attention needs beside the tokens.
struct Places {
    /// Which tokens are no padding, [batch, n].
    real: Name,
    /// The place of each token, -1 for the start token, [batch, n].
    place: Name,
}

/// Nodes and constants on their way.
struct Graph<'a, R> {
    model: &'a Model<R>,
    d: usize,
    kind: ElementType,
    nodes: Vec<Message>,
    tensors: Vec<Message>,
    constants: usize,
    values: usize,
    places: Places,
}

impl<'a, R: Real> Graph<'a, R> {
    fn new(model: &'a Model<R>) -> Self {
        let kind = if R::NAME == "f32" { ElementType::F32 } else { ElementType::F64 };
        let bytes = |numbers: &[R]| -> Vec<u8> {
            match kind {
                ElementType::F32 => numbers.iter().flat_map(|x| (x.to_f64() as f32).to_le_bytes()).collect(),
                _ => numbers.iter().flat_map(|x| x.to_f64().to_le_bytes()).collect(),
            }
        };
        let tensors = directory::tensors(model);
        let tensors = tensors.iter().map(|(name, shape, data)| tensor(name, kind, shape, &bytes(data))).collect();
        let places = Places { real: String::new(), place: String::new() };
        Self { model, d: model.transformer.d, kind, nodes: Vec::new(), tensors, constants: 0, values: 0, places }
    }

    /// A node with a new output.
    fn add(&mut self, operator: &str, inputs: &[&str], attributes: &[Attribute]) -> Name {
        self.values += 1;
        let name = format!("value.{}", self.values);
        self.named(operator, inputs, &name, attributes)
    }

    /// A node whose output has a name that people look for.
    fn named(&mut self, operator: &str, inputs: &[&str], output: &str, attributes: &[Attribute]) -> Name {
        self.nodes.push(node(operator, inputs, output, attributes));
        output.to_owned()
    }

    /// Whole numbers as a constant of some shape.
    fn whole(&mut self, numbers: &[i64], shape: &[usize]) -> Name {
        self.constants += 1;
        let name = format!("constant.{}", self.constants);
        let raw: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.tensors.push(tensor(&name, ElementType::I64, shape, &raw));
        name
    }

    /// One number of the model's kind as a constant.
    fn number(&mut self, x: f64) -> Name {
        self.constants += 1;
        let name = format!("constant.{}", self.constants);
        let raw = match self.kind {
            ElementType::F32 => (x as f32).to_le_bytes().to_vec(),
            _ => x.to_le_bytes().to_vec(),
        };
        self.tensors.push(tensor(&name, self.kind, &[], &raw));
        name
    }

    fn unsqueeze(&mut self, x: &str, axis: i64) -> Name {
        let axis = self.whole(&[axis], &[1]);
        self.add("Unsqueeze", &[x, &axis], &[])
    }

    /// A tensor with its last two axes exchanged.
    fn transposed(&mut self, x: &str, axes: &[i64]) -> Name {
        self.add("Transpose", &[x], &[Attribute::Ints("perm", axes)])
    }

    /// The tokens as vectors, behind the start token where there is one, and their places.
    fn inputs(&mut self) -> Name {
        let (zero, one) = (self.whole(&[0], &[]), self.whole(&[1], &[]));
        let axis = self.whole(&[1], &[]);
        let counted = self.add("CumSum", &["attention_mask", &axis], &[]);
        let place = self.add("Sub", &[&counted, &one], &[]);
        // Padding may stand on either side.
        let mut place = self.add("Max", &[&place, &zero], &[]);
        let mut mask = "attention_mask".to_owned();
        let model = self.model;
        let Some(words) = &model.words else {
            self.places = Places { real: self.add("Greater", &[&mask, &zero], &[]), place };
            return self.positioned("inputs".to_owned());
        };
        let mut ids = "input_ids".to_owned();
        if let Some(start) = words.start {
            // One more column, as long as the batch.
            let (first, second) = (self.whole(&[0], &[1]), self.whole(&[1], &[1]));
            let column = self.add("Slice", &["attention_mask", &first, &second, &second], &[]);
            let none = self.add("Mul", &[&column, &zero], &[]);
            for (list, x) in [(&mut ids, i64::from(start)), (&mut mask, 1), (&mut place, -1)] {
                let constant = self.whole(&[x], &[]);
                let column = self.add("Add", &[&none, &constant], &[]);
                *list = self.add("Concat", &[&column, list], &[Attribute::Int("axis", 1)]);
            }
        }
        self.places = Places { real: self.add("Greater", &[&mask, &zero], &[]), place };
        let vectors = self.add("Gather", &["embedding.weight", &ids], &[]);
        self.positioned(vectors)
    }

    /// The vectors of places added, where they are used. A start token is at place -1 and has the first row.
    fn positioned(&mut self, vectors: Name) -> Name {
        if self.model.positions.is_none() {
            return vectors;
        }
        let first = i64::from(self.model.start().is_some());
        let (first, place) = (self.whole(&[first], &[]), self.places.place.clone());
        let row = self.add("Add", &[&place, &first], &[]);
        let rows = self.add("Gather", &["positions.weight", &row], &[]);
        self.add("Add", &[&vectors, &rows], &[])
    }

    /// The Transformer.
    fn layers(&mut self, mut z: Name) -> Name {
        let model = self.model;
        if model.transformer.pre_feed_forward.is_some() {
            z = self.feed_forward(&z, "pre_feed_forward");
        }
        for (i, layer) in model.transformer.layers.iter().enumerate() {
            if let Some(attention) = &layer.attention {
                z = self.attention(&z, attention, &format!("layers.{i}.attention"));
            }
            if layer.feed_forward.is_some() {
                z = self.feed_forward(&z, &format!("layers.{i}.feed_forward"));
            }
        }
        z
    }

    /// Eq. 3.
    fn feed_forward(&mut self, z: &str, prefix: &str) -> Name {
        let [w1, b1, w2, b2] = ["w1", "b1", "w2", "b2"].map(|name| format!("{prefix}.{name}"));
        let w1 = self.transposed(&w1, &[1, 0]);
        let before = self.add("MatMul", &[z, &w1], &[]);
        let before = self.add("Add", &[&before, &b1], &[]);
        let units = self.named("Relu", &[&before], &format!("{prefix}.units"), &[]);
        let w2 = self.transposed(&w2, &[1, 0]);
        let out = self.add("MatMul", &[&units, &w2], &[]);
        let out = self.add("Add", &[&out, &b2], &[]);
        self.add("Add", &[z, &out], &[])
    }

    /// Eq. 2 or 5.
    fn attention(&mut self, z: &str, attention: &Attention<R>, prefix: &str) -> Name {
        let (nothing, hard) = (self.number(0.0), attention.kind == AttentionKind::Hardmax);
        // 0, so that a weight of 0 leaves nothing of padding.
        let real = self.places.real.clone();
        let column = self.unsqueeze(&real, -1);
        let x = self.add("Where", &[&column, z, &nothing], &[]);
        let x = self.unsqueeze(&x, 1);
        let [q, k, v] = ["w_q", "w_k", "w_v"].map(|name| {
            // Values are never compared.
            self.product(&x, &format!("{prefix}.{name}"), hard && name != "w_v", &[0, 2, 1])
        });
        let scores = self.product(&q, &k, hard, &[0, 1, 3, 2]);
        let visible = self.visible(&attention.mask);
        let never = self.number(f64::NEG_INFINITY);
        let mut scores = self.add("Where", &[&visible, &scores, &never], &[]);
        if hard {
            // Only the largest are left, all equal, so that softmax gives them equal weights.
            let attributes = [Attribute::Ints("axes", &[-1]), Attribute::Int("keepdims", 1)];
            let largest = self.add("ReduceMax", &[&scores], &attributes);
            let lower = self.add("Less", &[&scores, &largest], &[]);
            scores = self.add("Where", &[&lower, &never, &scores], &[]);
        }
        let last = [Attribute::Int("axis", -1)];
        let pattern = self.named("Softmax", &[&scores], &format!("{prefix}.pattern"), &last);
        let context = self.named("MatMul", &[&pattern, &v], &format!("{prefix}.context"), &[]);
        let w_o = self.transposed(&format!("{prefix}.w_o"), &[0, 2, 1]);
        let out = self.add("MatMul", &[&context, &w_o], &[]);
        let axis = self.whole(&[1], &[1]);
        let out = self.add("ReduceSum", &[&out, &axis], &[Attribute::Int("keepdims", 0)]);
        self.add("Add", &[z, &out], &[])
    }

    /// `a b^T`. Hardmax needs equal rows to give equal bits, which a matrix product does not promise: row by row then.
    fn product(&mut self, a: &str, b: &str, row_by_row: bool, axes: &[i64]) -> Name {
        if !row_by_row {
            let b = self.transposed(b, axes);
            return self.add("MatMul", &[a, &b], &[]);
        }
        let (a, b) = (self.unsqueeze(a, -2), self.unsqueeze(b, -3));
        let each = self.add("Mul", &[&a, &b], &[]);
        let axis = self.whole(&[-1], &[1]);
        self.add("ReduceSum", &[&each, &axis], &[Attribute::Int("keepdims", 0)])
    }

    /// Which keys each query sees, [batch, 1, query, key]. Every token sees itself, so that padding stays finite.
    fn visible(&mut self, mask: &Mask) -> Name {
        let Places { real, place } = &self.places;
        let (real, place) = (real.clone(), place.clone());
        let (query, key) = (self.unsqueeze(&place, -1), self.unsqueeze(&place, -2));
        let keys = self.unsqueeze(&real, -2);
        let shown = self.shown(mask, &query, &key);
        let seen = match shown {
            Some(shown) => self.add("And", &[&shown, &keys], &[]),
            None => keys,
        };
        // A token's own index: padding shares its place with others.
        let ones = self.add("Cast", &[&real], &[Attribute::Int("to", ElementType::I64 as i64)]);
        let one = self.whole(&[1], &[]);
        let ones = self.add("Add", &[&ones, &one], &[]);
        let axis = self.whole(&[1], &[]);
        let index = self.add("CumSum", &[&ones, &axis], &[]);
        let (row, column) = (self.unsqueeze(&index, -1), self.unsqueeze(&index, -2));
        let own = self.add("Equal", &[&row, &column], &[]);
        let visible = self.add("Or", &[&seen, &own], &[]);
        self.unsqueeze(&visible, 1)
    }

    /// Eq. 132: what a mask shows, by the places of queries and keys; nothing where it shows everything.
    fn shown(&mut self, mask: &Mask, query: &str, key: &str) -> Option<Name> {
        let or_start = |graph: &mut Self, shown: Name| {
            let minus_one = graph.whole(&[-1], &[]);
            let start = graph.add("Equal", &[key, &minus_one], &[]);
            Some(graph.add("Or", &[&shown, &start], &[]))
        };
        let whole = |x: usize| i64::try_from(x).unwrap_or(i64::MAX);
        match mask {
            Mask::None => None,
            Mask::Causal => Some(self.add("LessOrEqual", &[key, query], &[])),
            Mask::Prefix(prefix) => {
                let prefix = self.whole(&[whole(*prefix)], &[]);
                let first = self.add("Less", &[key, &prefix], &[]);
                let before = self.add("LessOrEqual", &[key, query], &[]);
                Some(self.add("Or", &[&first, &before], &[]))
            }
            Mask::Band(before, after) => {
                let (before, after) = (self.whole(&[whole(*before)], &[]), self.whole(&[whole(*after)], &[]));
                let (back, ahead) = (self.add("Sub", &[query, key], &[]), self.add("Sub", &[key, query], &[]));
                let back = self.add("LessOrEqual", &[&back, &before], &[]);
                let ahead = self.add("LessOrEqual", &[&ahead, &after], &[]);
                let shown = self.add("And", &[&back, &ahead], &[]);
                or_start(self, shown)
            }
            Mask::Matrix(matrix) => {
                let zero = self.whole(&[0], &[]);
                let size = matrix.size();
                let entries: Vec<i64> = matrix.entries().iter().map(|&x| i64::from(x)).collect();
                // One list, read at row * size + column; behind its end, which is an error, where a sequence is too long.
                let end = self.whole(&[whole(entries.len())], &[]);
                let (entries, width) = (self.whole(&entries, &[entries.len()]), self.whole(&[whole(size)], &[]));
                let (row, column) = (self.add("Max", &[query, &zero], &[]), self.add("Max", &[key, &zero], &[]));
                let inside = self.add("Less", &[&column, &width], &[]);
                let column = self.add("Where", &[&inside, &column, &end], &[]);
                let row = self.add("Mul", &[&row, &width], &[]);
                let at = self.add("Add", &[&row, &column], &[]);
                let entry = self.add("Gather", &[&entries, &at], &[]);
                let shown = self.add("Greater", &[&entry, &zero], &[]);
                // The matrix says nothing of the start token, which sees itself.
                let own = self.add("GreaterOrEqual", &[query, &zero], &[]);
                let shown = self.add("And", &[&shown, &own], &[]);
                or_start(self, shown)
            }
        }
    }

    /// Scores or outputs, without the start token: their dimension and the output's name.
    fn finish(&mut self, mut z: Name) -> (usize, &'static str) {
        let model = self.model;
        let labels = model.head.as_ref().map(|head| head.bias.len());
        let outputs = labels.or(model.outputs.as_ref().map(|head| head.bias.len()));
        if outputs.is_some() {
            let weight = self.transposed("head.weight", &[1, 0]);
            z = self.add("MatMul", &[&z, &weight], &[]);
            z = self.add("Add", &[&z, "head.bias"], &[]);
        }
        let name = if labels.is_some() { "logits" } else { "outputs" };
        if model.start().is_some() {
            let [first, end, axis] = [1, i64::MAX, 1].map(|x| self.whole(&[x], &[1]));
            self.named("Slice", &[&z, &first, &end, &axis], name, &[]);
        } else {
            self.named("Identity", &[&z], name, &[]);
        }
        (outputs.unwrap_or(self.d), name)
    }
}
