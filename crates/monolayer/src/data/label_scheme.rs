//! Label schemes for entities: as the file has them, or rewritten to IOB1 or IOB2.
//!
//! Both schemes tell the same entities (see [`super::entities`]). In IOB2 every first token has a `B-`; in IOB1 only the first
//! token of an entity that follows another one of its own type.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::entities::{Tag, entities};
use super::{Dataset, Labels, Vocabulary};
use crate::error::{Error, Result};

/// How entities are written as labels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LabelScheme {
    /// As the data has them, entities or not.
    #[default]
    AsIs,
    /// `B-` only where two entities of one type touch.
    Iob1,
    /// `B-` at the start of every entity.
    Iob2,
}

impl FromStr for LabelScheme {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "as-is" => Ok(Self::AsIs),
            "iob1" => Ok(Self::Iob1),
            "iob2" => Ok(Self::Iob2),
            _ => Err(Error::setting(format!("{name:?} is not a label scheme"), "the schemes are as-is, iob1 and iob2")),
        }
    }
}

impl LabelScheme {
    /// The dataset with its labels rewritten.
    pub fn apply(self, data: Dataset) -> Result<Dataset> {
        if self == Self::AsIs {
            return Ok(data);
        }
        let Labels::Classes { label_ids: ids, names } = &data.labels else {
            return Err(Error::mismatch(
                format!("{}: a label scheme, but the data has no classes as labels", data.name),
                "leave the labels as is",
            ));
        };
        let tags: Vec<Option<Tag>> = names.names().iter().map(|name| Tag::parse(name)).collect();
        if let Some(t) = ids.iter().position(|id| id.is_some_and(|id| tags[id as usize].is_none())) {
            let what = format!("the label {:?} is neither O nor B-TYPE nor I-TYPE", data.label_text(t));
            return Err(Error::data(data.location(t), what, "leave the labels as is"));
        }
        let mut rewritten = Vocabulary::default();
        let mut new_ids = Vec::with_capacity(ids.len());
        for range in data.ranges() {
            // What may be anything stays so, and is outside of the entities beside it.
            let tag = |id: &Option<u32>| id.and_then(|id| tags[id as usize]).unwrap_or(Tag::Outside);
            let sequence: Vec<Tag> = ids[range.clone()].iter().map(tag).collect();
            let labels = self.rewrite(&sequence);
            new_ids.extend(ids[range].iter().zip(&labels).map(|(id, label)| id.map(|_| rewritten.add(label))));
        }
        let labels = Labels::Classes { label_ids: new_ids, names: rewritten };
        Ok(Dataset { labels, ..data })
    }

    /// The labels of one sequence.
    fn rewrite(self, tags: &[Tag]) -> Vec<String> {
        let mut labels = vec!["O".to_owned(); tags.len()];
        let list = entities(tags.iter().copied());
        for (i, entity) in list.iter().enumerate() {
            let touches = i > 0 && list[i - 1].end == entity.start && list[i - 1].kind == entity.kind;
            labels[entity.start..entity.end].fill(format!("I-{}", entity.kind));
            if self == Self::Iob2 || touches {
                labels[entity.start] = format!("B-{}", entity.kind);
            }
        }
        labels
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Format;
    use crate::data::entities::Entity;
    use proptest::prelude::*;

    fn spans(labels: &[String]) -> Vec<Entity<'_>> {
        entities(labels.iter().map(|label| Tag::parse(label).unwrap()))
    }

    fn rewrite(scheme: LabelScheme, labels: &[String]) -> Vec<String> {
        let tags: Vec<Tag> = labels.iter().map(|label| Tag::parse(label).unwrap()).collect();
        scheme.rewrite(&tags)
    }

    #[test]
    fn a_file_rewritten() {
        let text = "a I-PER\nb I-PER\nc B-PER\n\nd I-LOC\ne O\n";
        let read = || Dataset::read("test", Format::Conll, text.as_bytes()).unwrap();
        let labels = |data: &Dataset| (0..5).map(|t| data.label(t).unwrap().to_owned()).collect::<Vec<_>>();
        let iob2 = LabelScheme::Iob2.apply(read()).unwrap();
        assert_eq!(labels(&iob2), ["B-PER", "I-PER", "B-PER", "B-LOC", "O"]);
        assert_eq!(labels(&LabelScheme::Iob1.apply(iob2).unwrap()), labels(&read()));
        assert_eq!(LabelScheme::AsIs.apply(read()).unwrap(), read());
    }

    #[test]
    fn other_labels_are_refused_with_their_place() {
        let data = Dataset::read("file", Format::Conll, "a O\nb VERB\n".as_bytes()).unwrap();
        let message = LabelScheme::Iob1.apply(data).unwrap_err().to_string();
        assert!(message.contains("file:2") && message.contains("\"VERB\""), "{message}");
    }

    proptest! {
        #[test]
        fn schemes_keep_entities_and_round_trip(
            labels in prop::collection::vec(prop::sample::select(&["O", "B-X", "I-X", "B-Y", "I-Y"]), 0..12),
        ) {
            let labels: Vec<String> = labels.into_iter().map(str::to_owned).collect();
            let (iob1, iob2) = (rewrite(LabelScheme::Iob1, &labels), rewrite(LabelScheme::Iob2, &labels));
            prop_assert_eq!(spans(&labels), spans(&iob1));
            prop_assert_eq!(spans(&labels), spans(&iob2));
            prop_assert_eq!(&rewrite(LabelScheme::Iob1, &iob2), &iob1);
            prop_assert_eq!(&rewrite(LabelScheme::Iob2, &iob1), &iob2);
            prop_assert_eq!(&rewrite(LabelScheme::Iob1, &iob1), &iob1);
        }
    }
}
