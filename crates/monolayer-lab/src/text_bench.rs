//! Long texts for measuring: a text from a seed, and a recitation of it.

use std::time::Instant;

use monolayer::data::{Split, Tokens, zipf_corpus};
use monolayer::model::Generator;
use monolayer::{AnyModel, Dataset, Result};

/// A text of so many words from a seed, by Zipf's law: the word of rank r comes 1 / r times as often as the first.
pub fn zipf_text(tokens: usize, seed: u64) -> Result<Dataset> {
    let corpus = zipf_corpus(tokens, seed);
    let Tokens::Words { word_ids, vocabulary } = &corpus.tokens else { unreachable!("a corpus of words") };
    let words: Vec<&str> = word_ids.iter().map(|&id| vocabulary.name(id)).collect();
    Dataset::from_text(&words.join(" "), Split::Word)
}

/// A text that a model wrote, beside the one that it should be.
#[derive(Debug, Clone, Copy)]
pub struct Recitation {
    /// Tokens up to the first one that is not the text's.
    pub right: usize,
    /// Whether all are right, and the text ends where it should.
    pub whole: bool,
    /// Seconds in all, and for attention.
    pub seconds: f64,
    /// Those for attention.
    pub attention_seconds: f64,
}

/// What a model writes after the first token of a text, up to its first error; `on_progress` hears of each token.
pub fn recite(model: &AnyModel, text: &Dataset, mut on_progress: impl FnMut(usize)) -> Result<Recitation> {
    let clock = Instant::now();
    let mut generator = Generator::new(model)?;
    generator.prompt(&text.token_text(0))?;
    let mut right = 1;
    while right < text.tokens()
        && let Some(token) = generator.step()?
        && token == text.token_text(right)
    {
        right += 1;
        on_progress(1);
    }
    let whole = right == text.tokens() && generator.ended();
    let attention_seconds = generator.attention_time().as_secs_f64();
    Ok(Recitation { right, whole, seconds: clock.elapsed().as_secs_f64(), attention_seconds })
}

#[cfg(test)]
mod tests {
    use monolayer::Memorizer;

    use super::*;

    #[test]
    fn a_text_is_recited_or_not() {
        let text = zipf_text(60, 1).unwrap();
        assert_eq!((text.tokens(), text.sequences()), (60, 1));
        assert_eq!(text.hash(), zipf_text(60, 1).unwrap().hash());
        let compiled = Memorizer::new().text(Split::Word).compile(&text).unwrap();
        let found = recite(compiled.model(), &text, |_| ()).unwrap();
        assert_eq!((found.right, found.whole), (60, true));
        let off = recite(&compiled.model().without_attention(), &text, |_| ()).unwrap();
        assert!(off.right < 60 && !off.whole);
    }
}
