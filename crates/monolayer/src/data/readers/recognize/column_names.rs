//! Names of columns and fields that everybody uses.

/// What a name of a column says about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameKind {
    /// A word in each row.
    Word,
    /// Words in each row, or a word.
    Words,
    /// The label.
    Label,
    /// Something else that one could want to predict.
    OtherLabel,
    /// Which sequence this is.
    Sentence,
    /// A number of a row, or something else that is neither.
    Other,
}

/// Fields and arrays of labels.
pub(crate) const LABEL_NAMES: [&str; 5] = ["ner_tags", "labels", "tags", "label", "y"];

/// What a name says, if it is a known one.
pub(crate) fn name_kind(name: &str) -> Option<NameKind> {
    let name = name.trim().to_lowercase().replace(['-', ' '], "_");
    Some(match name.as_str() {
        "word" | "token" | "form" => NameKind::Word,
        "words" | "tokens" | "text" | "sequence" => NameKind::Words,
        "tag" | "tags" | "label" | "labels" | "ner" | "ner_tag" | "ner_tags" | "entity" | "class" => NameKind::Label,
        "pos" | "pos_tag" | "pos_tags" | "upos" | "xpos" | "chunk" | "chunk_tags" | "deprel" | "score" | "target"
        | "rating" | "sentiment" | "category" | "intent" => NameKind::OtherLabel,
        "sentence_#" | "sentence" | "sentence_id" | "sentence_idx" | "sent_id" | "sent" | "sentence_number"
        | "sequence_id" | "seq_id" => NameKind::Sentence,
        "id" | "lemma" | "index" | "idx" | "token_id" | "feats" | "head" => NameKind::Other,
        _ => return None,
    })
}

/// Whether something is written as tags are: no small letter (but after `B-` and the like), or a number.
pub(crate) fn tag_like(text: &str) -> bool {
    let prefixed = matches!(text.as_bytes(), [b'B' | b'I' | b'E' | b'S' | b'L' | b'U', b'-' | b'_', _, ..]);
    prefixed || !text.chars().any(char::is_lowercase)
}
