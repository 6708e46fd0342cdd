//! The few messages of ONNX that a model needs, written as protocol buffers. Field numbers are those of onnx.proto.

/// A message on its way: fields, one after another.
#[derive(Default)]
pub struct Message(Vec<u8>);

impl Message {
    /// The bytes.
    pub fn bytes(self) -> Vec<u8> {
        self.0
    }

    fn varint(&mut self, mut x: u64) {
        while x >= 0x80 {
            self.0.push(x as u8 | 0x80);
            x >>= 7;
        }
        self.0.push(x as u8);
    }

    /// A whole number.
    #[must_use]
    pub fn int(mut self, field: u64, x: i64) -> Self {
        self.varint(field << 3);
        self.varint(x as u64);
        self
    }

    /// Bytes.
    #[must_use]
    pub fn raw(mut self, field: u64, bytes: &[u8]) -> Self {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    /// A text.
    #[must_use]
    pub fn text(self, field: u64, text: &str) -> Self {
        self.raw(field, text.as_bytes())
    }

    /// A message inside.
    #[must_use]
    pub fn message(self, field: u64, message: &Self) -> Self {
        self.raw(field, &message.0)
    }

    /// Many fields of one kind.
    #[must_use]
    pub fn each<T>(self, items: impl IntoIterator<Item = T>, put: impl Fn(Self, T) -> Self) -> Self {
        items.into_iter().fold(self, put)
    }
}

/// What the numbers of a tensor are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElementType {
    /// Single precision.
    F32 = 1,
    /// Ids and masks.
    I64 = 7,
    /// Double precision.
    F64 = 11,
}

/// A `TensorProto`.
pub fn tensor(name: &str, kind: ElementType, shape: &[usize], raw: &[u8]) -> Message {
    let dims = Message::default().each(shape, |m, &n| m.int(1, n as i64));
    dims.int(2, kind as i64).text(8, name).raw(9, raw)
}

/// A length that is a number, or a name where it may be any.
#[derive(Debug, Clone, Copy)]
pub enum Length<'a> {
    /// Known.
    Is(usize),
    /// Any.
    Any(&'a str),
}

/// A `ValueInfoProto`: an input or output of the graph.
pub fn value(name: &str, kind: ElementType, shape: &[Length]) -> Message {
    let dimension = |length: &Length| match length {
        Length::Is(n) => Message::default().int(1, *n as i64),
        Length::Any(name) => Message::default().text(2, name),
    };
    let shape = Message::default().each(shape, |m, length| m.message(1, &dimension(length)));
    let tensor = Message::default().int(1, kind as i64).message(2, &shape);
    Message::default().text(1, name).message(2, &Message::default().message(1, &tensor))
}

/// An attribute of a node: a whole number, or several.
#[derive(Debug, Clone, Copy)]
pub enum Attribute<'a> {
    /// One.
    Int(&'a str, i64),
    /// Several.
    Ints(&'a str, &'a [i64]),
}

/// A `NodeProto`.
pub fn node(operator: &str, inputs: &[&str], output: &str, attributes: &[Attribute]) -> Message {
    let attribute = |attribute: &Attribute| match *attribute {
        Attribute::Int(name, x) => Message::default().text(1, name).int(3, x).int(20, 2),
        Attribute::Ints(name, list) => Message::default().text(1, name).each(list, |m, &x| m.int(8, x)).int(20, 7),
    };
    Message::default()
        .each(inputs, |m, name| m.text(1, name))
        .text(2, output)
        .text(3, output)
        .text(4, operator)
        .each(attributes, |m, a| m.message(5, &attribute(a)))
}
