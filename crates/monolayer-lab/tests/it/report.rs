//! The report page: what is in it, and what never is.

use std::path::Path;

use monolayer::Dataset;
use monolayer::Memorizer;
use monolayer::approximate::Approximator;
use monolayer::approximate::expression::Expression;
use monolayer::data::{Format, Split};
use monolayer_lab::report::{Data, page, page_in_memory};
use monolayer_lab::{example, picture};

fn compiled(data: &Dataset, directory: &Path) {
    let memorizer = Memorizer::new().candidates(32);
    memorizer.compile(data).unwrap().save(directory).unwrap();
}

fn of(text: &str) -> (tempfile::TempDir, Dataset, String) {
    let room = tempfile::tempdir().unwrap();
    let file = room.path().join("data.conll");
    std::fs::write(&file, text).unwrap();
    let data = Dataset::read("data.conll", Format::Conll, text.as_bytes()).unwrap();
    compiled(&data, &room.path().join("model"));
    (room, data, file.to_string_lossy().into_owned())
}

#[test]
fn a_model_of_the_example_needs_no_data() {
    let room = tempfile::tempdir().unwrap();
    compiled(&example::dataset().unwrap(), &room.path().join("harbor"));
    let html = page(&[room.path().join("harbor")], None).unwrap();
    for part in
        ["The model harbor", "verified", ">241<", "tour-data", "Content-Security-Policy", "prefers-color-scheme"]
    {
        assert!(html.contains(part), "{part}");
    }
    assert!(html.len() < monolayer_lab::report::MOST_BYTES);
    // Nothing to fetch: no address but the names of XML namespaces.
    let addresses = html.match_indices("http").filter(|(i, _)| !html[*i..].starts_with("http://www.w3.org/"));
    assert!(addresses.map(|(i, _)| &html[i..i + 12]).all(|found| found == "http-equiv=\""));
    // The same files give the same page.
    assert_eq!(html, page(&[room.path().join("harbor")], None).unwrap());
}

#[test]
fn words_never_become_code() {
    let hostile = "</script><script>alert(1)</script>";
    let text = format!("{hostile} <b>\n<img/src=x> {hostile}\n\n<img/src=x> O\n{hostile} O\n");
    let (room, data, source) = of(&text);
    let html = page(&[room.path().join("model")], Some(&Data { dataset: &data, source: &source })).unwrap();
    assert!(!html.contains("<script>") && !html.contains("<img") && !html.contains("<b>"));
    assert_eq!(html.matches("</script>").count(), 2, "the data block and the page's own scripts");
    // Every script of the page carries the number that the policy asks for.
    let nonce = html.split("'nonce-").nth(1).unwrap().split('\'').next().unwrap();
    assert!(html.contains(&format!("<script nonce=\"{nonce}\">")) && nonce.len() == 32);
}

#[test]
fn texts_and_functions_need_no_data() {
    let room = tempfile::tempdir().unwrap();
    let text = Dataset::from_text("to be or not to be that is", Split::Word).unwrap();
    let compiled = Memorizer::new().text(Split::Word).candidates(32).compile(&text).unwrap();
    let html = page_in_memory("A text", |dir| compiled.save(dir), None).unwrap();
    for part in ["<h1>A text</h1>", "recites a text", "It gets 8 of 8 tokens right", "tour-data", ">verified<"] {
        assert!(html.contains(part), "{part}");
    }
    let f = Expression::parse("x1*mean(x1)", 1).unwrap().at_length(2).unwrap();
    let approximation = Approximator::new().compile(&f, 4).unwrap();
    approximation.save(room.path().join("function")).unwrap();
    let html = page(&[room.path().join("function")], None).unwrap();
    for part in ["approximation-data", "<code>x1*mean(x1)</code>", "one of 4 parts", "distance, at most"] {
        assert!(html.contains(part), "{part}");
    }
}

#[test]
fn what_is_no_model_and_no_run_is_named() {
    let room = tempfile::tempdir().unwrap();
    let error = page(&[room.path()], None).unwrap_err().to_string();
    assert!(error.contains("neither a model nor a run"), "{error}");
    let error = page(&[room.path().join("missing")], None).unwrap_err().to_string();
    assert!(error.contains("missing"), "{error}");
}

#[test]
fn models_without_a_tour_say_why() {
    let (room, data, source) = of("a X\nb Y\n\nb X\na Y\n");
    let other = Dataset::read("other", Format::Conll, "c X\n".as_bytes()).unwrap();
    let html = page(&[room.path().join("model")], Some(&Data { dataset: &data, source: &source })).unwrap();
    assert!(html.contains("tour-data"));
    let error = page(&[room.path().join("model")], Some(&Data { dataset: &other, source: &source })).unwrap_err();
    assert!(error.to_string().contains("does not know the word"), "{error}");
    let html = page(&[room.path().join("model")], None).unwrap();
    assert!(html.contains("No tour without sentences") && html.contains("claimed, not checked"));
}

#[test]
fn trainings_become_curves() {
    let room = tempfile::tempdir().unwrap();
    let lines = "{\"epoch\":1,\"train_loss\":2.5,\"train_accuracy\":null}\n{\"epoch\":2,\"train_loss\":1.5,\"train_accuracy\":0.5}\n";
    std::fs::write(room.path().join("metrics.jsonl"), format!("{lines}{{\"epoch\":3,\"tr")).unwrap();
    let html = page(&[room.path()], None).unwrap();
    assert!(html.contains("train_loss (nats per token)") && html.contains("2 measurements"), "{html}");
    std::fs::write(room.path().join("metrics.jsonl"), format!("{lines}broken\n{lines}")).unwrap();
    let error = page(&[room.path()], None).unwrap_err().to_string();
    assert!(error.contains("metrics.jsonl") && error.contains("line 3"), "{error}");
    std::fs::write(room.path().join("metrics.jsonl"), lines).unwrap();
    std::fs::write(room.path().join("more.csv"), "step,seconds\n1,0.5\n2,1.0\n").unwrap();
    assert!(page(&[room.path()], None).unwrap().contains("more.csv"));
}

#[test]
fn the_picture_shows_every_context_of_its_word() {
    let data = example::dataset().unwrap();
    let compiled = Memorizer::new().candidates(32).compile(&data).unwrap();
    let drawn = |word: &str| picture::ids(compiled.model(), &data, word, 0);
    let svg = drawn("May").unwrap().svg_file("ids");
    for sentence in [
        "[May] sails in May . → PER",
        "[May] and June are dry . → DATE",
        "[May] I sail the May ? → O",
        ">context id g(y)<",
        ">query y<",
        ">0<",
    ] {
        assert!(svg.contains(sentence), "{sentence}");
    }
    assert!(drawn("Sail").is_err());
}
