//! A model on one sequence as a list of operations, so that a program is a choice per operation.

use super::case::{Attention, Block, Model, Token};

/// What a quantity is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Embedding plus position, coordinate `index`.
    Input,
    /// Unit `index` of a feed-forward layer before ReLU, and after.
    Unit,
    Live,
    /// Coordinate `index` after a feed-forward layer.
    Fed,
    /// Row `index` of head `head`.
    Query,
    Key,
    Value,
    /// The score of token `other` at token `token`.
    Score,
    /// The largest score.
    Top,
    /// exp(score - largest) of token `other`; 0 or 1 in hardmax.
    Exp,
    /// Their sum.
    Total,
    /// The same over their sum.
    Weight,
    /// Row `index` of head `head`: the mean of the values.
    Mean,
    /// Coordinate `index` after attention.
    Attended,
    /// Score `index` of the head.
    Label,
}

/// The layer of the block before the first layer.
pub const PRE: usize = usize::MAX;

/// Which quantity a node is. Tokens count from 0, the start token included where there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Name {
    pub stage: Stage,
    pub layer: usize,
    pub token: usize,
    pub head: usize,
    pub index: usize,
    pub other: usize,
}

#[derive(Debug, Clone, Copy)]
pub enum Factor {
    Number(f64),
    Node(usize),
}

#[derive(Debug, Clone, Copy)]
pub enum Term {
    Product(Factor, Factor),
    Plain(Factor),
}

#[derive(Debug, Clone)]
pub enum Operation {
    /// In any order, with any fusing.
    Sum(Vec<Term>),
    Relu(usize),
    Max(Vec<usize>),
    /// exp(a - b).
    Exp(usize, usize),
    /// 1 where equal, else 0.
    Equal(usize, usize),
    Quotient(usize, usize),
    /// The sum of value times weight, normalized before (with weights) or after (with exponentials and total).
    Mean {
        exps: Vec<usize>,
        weights: Vec<usize>,
        values: Vec<usize>,
        total: usize,
    },
}

#[derive(Debug, Clone)]
pub struct Node {
    pub name: Name,
    pub operation: Operation,
}

#[derive(Debug, Clone)]
pub struct Graph {
    pub nodes: Vec<Node>,
    /// The last layer's coordinates of every token but the start token.
    pub outputs: Vec<Vec<usize>>,
    /// The head's scores of every token but the start token; empty without a head.
    pub scores: Vec<Vec<usize>>,
    /// The coordinates after the attention of each layer, by layer and token (start token left out).
    pub attended: Vec<Vec<Vec<usize>>>,
}

struct Builder<'a> {
    model: &'a Model,
    nodes: Vec<Node>,
}

fn name(stage: Stage, layer: usize, token: usize, index: usize) -> Name {
    Name { stage, layer, token, head: 0, index, other: 0 }
}

fn row(w: &[f64], x: &[usize]) -> Vec<Term> {
    w.iter().zip(x).map(|(&w, &x)| Term::Product(Factor::Number(w), Factor::Node(x))).collect()
}

impl Builder<'_> {
    fn put(&mut self, name: Name, operation: Operation) -> usize {
        self.nodes.push(Node { name, operation });
        self.nodes.len() - 1
    }

    fn input(&mut self, tokens: &[Token]) -> Vec<Vec<usize>> {
        let model = self.model;
        let d = model.d;
        let start = model.start.map(Token::Word);
        let all: Vec<Token> = start.into_iter().chain(tokens.iter().cloned()).collect();
        let mut states = Vec::new();
        for (place, token) in all.iter().enumerate() {
            let vector: Vec<f64> = match token {
                Token::Word(w) => model.embedding.as_ref().expect("words have rows")[w * d..(w + 1) * d].to_vec(),
                Token::Vector(v) => v.clone(),
            };
            let mut state = Vec::new();
            for (c, x) in vector.into_iter().enumerate() {
                let mut terms = vec![Term::Plain(Factor::Number(x))];
                if let Some(p) = &model.positions {
                    terms.push(Term::Plain(Factor::Number(p[place * d + c])));
                }
                state.push(self.put(name(Stage::Input, 0, place, c), Operation::Sum(terms)));
            }
            states.push(state);
        }
        states
    }

    fn block(&mut self, part: &Block, layer: usize, token: usize, x: &[usize]) -> Vec<usize> {
        let (d, q) = (self.model.d, part.hidden);
        let mut live = Vec::new();
        for j in 0..q {
            let mut terms = row(&part.w1[j * d..(j + 1) * d], x);
            terms.push(Term::Plain(Factor::Number(part.b1[j])));
            let unit = self.put(name(Stage::Unit, layer, token, j), Operation::Sum(terms));
            live.push(self.put(name(Stage::Live, layer, token, j), Operation::Relu(unit)));
        }
        let mut out = Vec::new();
        for (c, &skip) in x.iter().enumerate() {
            let mut terms = row(&part.w2[c * q..(c + 1) * q], &live);
            terms.push(Term::Plain(Factor::Node(skip)));
            terms.push(Term::Plain(Factor::Number(part.b2[c])));
            out.push(self.put(name(Stage::Fed, layer, token, c), Operation::Sum(terms)));
        }
        out
    }

    fn attend(&mut self, a: &Attention, layer: usize, states: &[Vec<usize>]) -> Vec<Vec<usize>> {
        let d = self.model.d;
        let mut project = |w: &[f64], stage: Stage| -> Vec<Vec<usize>> {
            let mut out = Vec::new();
            for (token, x) in states.iter().enumerate() {
                let mut rows = Vec::new();
                for k in 0..a.heads * a.size {
                    let name = Name { stage, layer, token, head: k / a.size, index: k % a.size, other: 0 };
                    rows.push(self.put(name, Operation::Sum(row(&w[k * d..(k + 1) * d], x))));
                }
                out.push(rows);
            }
            out
        };
        let parts = [project(&a.w_q, Stage::Query), project(&a.w_k, Stage::Key), project(&a.w_v, Stage::Value)];
        let first = i64::from(self.model.start.is_some());
        let mut out = Vec::new();
        for (token, state) in states.iter().enumerate() {
            let seen =
                |j: &usize| a.mask.sees(token as i64 - first, *j as i64 - first) && (first == 1 || *j < states.len());
            let visible: Vec<usize> = (0..states.len()).filter(seen).collect();
            let means: Vec<usize> =
                (0..a.heads).flat_map(|head| self.head(a, (layer, token, head), &parts, &visible)).collect();
            let mut attended = Vec::new();
            for (c, &skip) in state.iter().enumerate() {
                let mut terms = vec![Term::Plain(Factor::Node(skip))];
                for (k, &mean) in means.iter().enumerate() {
                    let w = a.w_o[(k / a.size * d + c) * a.size + k % a.size];
                    terms.push(Term::Product(Factor::Number(w), Factor::Node(mean)));
                }
                attended.push(self.put(name(Stage::Attended, layer, token, c), Operation::Sum(terms)));
            }
            out.push(attended);
        }
        out
    }

    /// The means of one head at one token.
    fn head(
        &mut self,
        a: &Attention,
        (layer, token, head): (usize, usize, usize),
        [queries, keys, values]: &[Vec<Vec<usize>>; 3],
        visible: &[usize],
    ) -> Vec<usize> {
        let named = |stage, index, other| Name { stage, layer, token, head, index, other };
        let columns = head * a.size..(head + 1) * a.size;
        let mut scores = Vec::new();
        for &j in visible {
            let product = |k: usize| Term::Product(Factor::Node(keys[j][k]), Factor::Node(queries[token][k]));
            let terms = columns.clone().map(product).collect();
            scores.push(self.put(named(Stage::Score, 0, j), Operation::Sum(terms)));
        }
        let top = self.put(named(Stage::Top, 0, 0), Operation::Max(scores.clone()));
        let mut exps = Vec::new();
        for (&j, &score) in visible.iter().zip(&scores) {
            let operation = if a.hard { Operation::Equal(score, top) } else { Operation::Exp(score, top) };
            exps.push(self.put(named(Stage::Exp, 0, j), operation));
        }
        let terms = exps.iter().map(|&e| Term::Plain(Factor::Node(e))).collect();
        let total = self.put(named(Stage::Total, 0, 0), Operation::Sum(terms));
        let mut weights = Vec::new();
        for (&j, &exp) in visible.iter().zip(&exps) {
            weights.push(self.put(named(Stage::Weight, 0, j), Operation::Quotient(exp, total)));
        }
        let mut means = Vec::new();
        for (index, k) in columns.enumerate() {
            let values = visible.iter().map(|&j| values[j][k]).collect();
            let operation = Operation::Mean { exps: exps.clone(), weights: weights.clone(), values, total };
            means.push(self.put(named(Stage::Mean, index, 0), operation));
        }
        means
    }
}

impl Graph {
    pub fn new(model: &Model, tokens: &[Token]) -> Self {
        let mut b = Builder { model, nodes: vec![] };
        let mut states = b.input(tokens);
        if let Some(part) = &model.pre {
            states = states.iter().enumerate().map(|(t, x)| b.block(part, PRE, t, x)).collect();
        }
        let skip = usize::from(model.start.is_some());
        let mut attended = Vec::new();
        for (i, layer) in model.layers.iter().enumerate() {
            if let Some(a) = &layer.attention {
                states = b.attend(a, i, &states);
            }
            attended.push(states[skip..].to_vec());
            if let Some(part) = &layer.block {
                states = states.iter().enumerate().map(|(t, x)| b.block(part, i, t, x)).collect();
            }
        }
        let outputs = states[skip..].to_vec();
        let mut scores = Vec::new();
        if let Some(head) = &model.head {
            for (t, x) in outputs.iter().enumerate() {
                let mut all = Vec::new();
                for l in 0..head.rows {
                    let mut terms = row(&head.weight[l * model.d..(l + 1) * model.d], x);
                    terms.push(Term::Plain(Factor::Number(head.bias[l])));
                    all.push(b.put(name(Stage::Label, model.layers.len(), t + skip, l), Operation::Sum(terms)));
                }
                scores.push(all);
            }
        }
        Self { nodes: b.nodes, outputs, scores, attended }
    }
}
