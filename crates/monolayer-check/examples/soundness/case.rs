//! Models and data in memory, as a directory would have them, apart from the checker's own types.

/// What a token sees, from its own sequence; the start token is always seen, and so is the token itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mask {
    None,
    Causal,
    Prefix(usize),
    Band(usize, usize),
    /// Of a file: bit 8 i + j says whether place i sees place j. One per model.
    Matrix(u64),
}

impl Mask {
    /// Whether place i sees place j; the start token is at place -1.
    pub fn sees(self, i: i64, j: i64) -> bool {
        i == j
            || j == -1
            || match self {
                Self::None => true,
                Self::Causal => j <= i,
                Self::Prefix(k) => j < k as i64 || j <= i,
                // The matrix has no row for the start token: it sees no other.
                Self::Matrix(bits) => i >= 0 && bits >> (8 * i + j) & 1 == 1,
                Self::Band(before, after) => i - before as i64 <= j && j <= i + after as i64,
            }
    }
}

/// Row-major, as in the file.
#[derive(Debug, Clone)]
pub struct Attention {
    pub hard: bool,
    pub heads: usize,
    pub size: usize,
    pub mask: Mask,
    /// `[heads, size, d]`.
    pub w_q: Vec<f64>,
    pub w_k: Vec<f64>,
    pub w_v: Vec<f64>,
    /// `[heads, d, size]`.
    pub w_o: Vec<f64>,
}

#[derive(Debug, Clone)]
pub struct Block {
    pub hidden: usize,
    /// `[hidden, d]`.
    pub w1: Vec<f64>,
    pub b1: Vec<f64>,
    /// `[d, hidden]`.
    pub w2: Vec<f64>,
    pub b2: Vec<f64>,
}

#[derive(Debug, Clone)]
pub struct Layer {
    pub attention: Option<Attention>,
    pub block: Option<Block>,
}

#[derive(Debug, Clone)]
pub struct Head {
    /// Labels, or outputs of another dimension.
    pub labels: bool,
    pub rows: usize,
    pub weight: Vec<f64>,
    pub bias: Vec<f64>,
}

#[derive(Debug, Clone)]
pub struct Model {
    /// f32 in the file, f64 otherwise. Numbers fit.
    pub single: bool,
    pub d: usize,
    /// `[words, d]`; none where tokens are vectors.
    pub embedding: Option<Vec<f64>>,
    /// The row of the start token.
    pub start: Option<usize>,
    /// `[max_length, d]`.
    pub positions: Option<Vec<f64>>,
    pub pre: Option<Block>,
    pub layers: Vec<Layer>,
    pub head: Option<Head>,
}

impl Model {
    /// Whether it needs the second version of the format.
    pub fn second_format(&self) -> bool {
        let masks = self.layers.iter().filter_map(|l| l.attention.as_ref()).map(|a| a.mask);
        let objects = masks.into_iter().any(|m| !matches!(m, Mask::None | Mask::Causal));
        objects || self.start.is_some() || self.head.as_ref().is_some_and(|h| !h.labels)
    }

    /// How many words have a row.
    pub fn words(&self) -> usize {
        self.embedding.as_ref().map_or(0, |e| e.len() / self.d)
    }

    /// All tensors with their names and shapes.
    pub fn tensors(&self) -> Vec<(String, Vec<usize>, &Vec<f64>)> {
        let mut out = Vec::new();
        let d = self.d;
        if let Some(e) = &self.embedding {
            out.push(("embedding.weight".to_owned(), vec![e.len() / d, d], e));
        }
        if let Some(p) = &self.positions {
            out.push(("positions.weight".to_owned(), vec![p.len() / d, d], p));
        }
        if let Some(f) = &self.pre {
            block(&mut out, "pre_feed_forward", f, d);
        }
        for (i, layer) in self.layers.iter().enumerate() {
            if let Some(a) = &layer.attention {
                for (name, w) in [("w_q", &a.w_q), ("w_k", &a.w_k), ("w_v", &a.w_v)] {
                    out.push((format!("layers.{i}.attention.{name}"), vec![a.heads, a.size, d], w));
                }
                out.push((format!("layers.{i}.attention.w_o"), vec![a.heads, d, a.size], &a.w_o));
            }
            if let Some(f) = &layer.block {
                block(&mut out, &format!("layers.{i}.feed_forward"), f, d);
            }
        }
        if let Some(head) = &self.head {
            out.push(("head.weight".to_owned(), vec![head.rows, d], &head.weight));
            out.push(("head.bias".to_owned(), vec![head.rows], &head.bias));
        }
        out
    }

    /// The same tensors, to be changed.
    pub fn numbers(&mut self) -> Vec<&mut Vec<f64>> {
        let mut out: Vec<&mut Vec<f64>> = vec![];
        out.extend(self.embedding.as_mut());
        out.extend(self.positions.as_mut());
        let layers = self.layers.iter_mut().map(|l| (l.attention.as_mut(), l.block.as_mut()));
        for (a, f) in layers.chain([(None, self.pre.as_mut())]) {
            out.extend(a.into_iter().flat_map(|a| [&mut a.w_q, &mut a.w_k, &mut a.w_v, &mut a.w_o]));
            out.extend(f.into_iter().flat_map(|f| [&mut f.w1, &mut f.b1, &mut f.w2, &mut f.b2]));
        }
        if let Some(head) = &mut self.head {
            out.extend([&mut head.weight, &mut head.bias]);
        }
        out
    }
}

fn block<'a>(out: &mut Vec<(String, Vec<usize>, &'a Vec<f64>)>, name: &str, f: &'a Block, d: usize) {
    let q = f.hidden;
    out.push((format!("{name}.w1"), vec![q, d], &f.w1));
    out.push((format!("{name}.b1"), vec![q], &f.b1));
    out.push((format!("{name}.w2"), vec![d, q], &f.w2));
    out.push((format!("{name}.b2"), vec![d], &f.b2));
}

/// A token: a row of the embedding, or a vector.
#[derive(Debug, Clone, PartialEq)]
pub enum Token {
    Word(usize),
    Vector(Vec<f64>),
}

/// What is wanted of a token.
#[derive(Debug, Clone, PartialEq)]
pub enum Wanted {
    Label(usize),
    Output(Vec<f64>),
}

#[derive(Debug, Clone, Default)]
pub struct Data {
    pub sequences: Vec<Vec<Token>>,
    /// One per token of every sequence; empty where nothing is wanted.
    pub wanted: Vec<Vec<Wanted>>,
}

/// What is asked of the checker.
#[derive(Debug, Clone, PartialEq)]
pub enum Claim {
    /// The labels of the data, token by token.
    Labels,
    /// Every output within a tolerance.
    Outputs(f64),
    /// Layer, log2 r, log2 delta.
    Mapping(usize, f64, f64),
    /// A tensor's rank.
    Rank(String, usize),
    /// p, bound, function, length.
    Distance(u32, f64, &'static str, usize),
}

/// The arithmetic of the programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    Single,
    Double,
    Real,
}

impl Arithmetic {
    pub fn name(self) -> &'static str {
        match self {
            Self::Single => "f32",
            Self::Double => "f64",
            Self::Real => "real",
        }
    }
}

#[derive(Debug, Clone)]
pub struct Case {
    /// Which generator made it.
    pub kind: &'static str,
    pub model: Model,
    pub data: Data,
    pub arithmetic: Arithmetic,
    pub claim: Claim,
}
