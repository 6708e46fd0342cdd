//! What readers of JSON, safetensors and model directories refuse.

use std::fs;

use crate::common::{Files, file, floats, integers, pack};
use monolayer_core::model::{FeedForward, Mask, Model, Numbers};
use monolayer_core::read::json::{self, Json};
use monolayer_core::read::{Limits, directory, tensors};
use monolayer_core::{Dyadic, Stored};

#[test]
fn json_is_read() {
    let text = " {\"a\\u0062\\ud83d\\ude00\\n/\\/\": [0, -0, 1.5e+3, 1E-2, null, true, false, \"\", {}, []]}\r\n";
    let json = json::parse(text.as_bytes()).unwrap();
    let (name, list) = &json.object().unwrap()[0];
    assert_eq!(name, "ab\u{1F600}\n//");
    let list = list.list().unwrap();
    assert_eq!((&list[1], &list[2], &list[3]), (&Json::Number("-0"), &Json::Number("1.5e+3"), &Json::Number("1E-2")));
    assert_eq!((list[0].size(), list[1].size(), list[2].size()), (Some(0), None, None));
    assert_eq!(list[4..7], [Json::Null, Json::Bool(true), Json::Bool(false)]);
    assert_eq!(json::parse(b"9223372036854775807").unwrap().size(), Some(i64::MAX as usize));
    assert_eq!(json::parse(b"9223372036854775808").unwrap().size(), None);
    assert!(json::parse(format!("{}{}", "[".repeat(64), "]".repeat(64)).as_bytes()).is_ok());
}

#[test]
fn json_is_refused() {
    let deep = "[".repeat(65) + &"]".repeat(65);
    let endless = "[".repeat(1_000_000);
    for (text, says) in [
        ("", "EOF"),
        (" ", "EOF"),
        ("\u{feff}{}", "expected a value"),
        ("{\"a\":1,\"a\":2}", "appears twice"),
        ("{\"a\":1,\"\\u0061\":2}", "appears twice"),
        ("[{\"b\":{\"a\":1,\"a\":2}}]", "appears twice"),
        ("\"\\ud800\"", "surrogate"),
        ("\"\\udc00\"", "surrogate"),
        ("\"\\ud800\\u0041\"", "surrogate"),
        ("\"\\ud800\\ud800\"", "surrogate"),
        ("\"\\u12\"", "hexadecimal"),
        ("\"\\u+123\"", "hexadecimal"),
        ("\"\\u12\u{e9}\"", "hexadecimal"),
        ("\"\\x\"", "known escape"),
        ("\"a\nb\"", "control"),
        ("\"\t\"", "control"),
        ("\"a", "EOF"),
        ("01", "nothing more"),
        ("-01", "nothing more"),
        ("1.", "expected"),
        (".5", "expected"),
        ("+1", "expected"),
        ("1e", "expected"),
        ("1e+", "expected"),
        ("-", "expected"),
        ("NaN", "expected"),
        ("-Infinity", "expected"),
        ("0x10", "nothing more"),
        ("1 2", "nothing more"),
        ("{} x", "nothing more"),
        ("[1,]", "expected"),
        ("[,1]", "expected"),
        ("[1 2]", "comma"),
        ("{\"a\":1,}", "a string"),
        ("{\"a\" 1}", "colon"),
        ("{a:1}", "a string"),
        ("[1}", "comma"),
        ("nul", "expected"),
        ("'a'", "expected"),
        ("// x\n1", "expected"),
        ("\u{a0}1", "expected"),
        (&deep, "recursion"),
        (&endless, "recursion"),
    ] {
        let e = json::parse(text.as_bytes()).expect_err(text).to_string();
        assert!(e.contains(says), "{text:.40}: {e}");
    }
    assert!(json::parse(b"\"\xFF\"").unwrap_err().what.contains("UTF-8"));
    assert!(json::parse(b"[1,\n2,\n x]").unwrap_err().what.starts_with("line 3, byte 9"));
}

#[test]
fn safetensors_are_refused() {
    let one = r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
    assert_eq!(tensors::safetensors(&file(&format!("{one}  \n"), &[0; 4])).unwrap()["a"].shape, [1]);
    assert!(tensors::safetensors(&file(r#"{"__metadata__":{"a":"b"}}"#, &[])).unwrap().is_empty());
    let entry = |entry: &str| format!(r#"{{"a":{entry}}}"#);
    for (header, data, says) in [
        (format!(" {one}"), 4, "begin"),
        ("[]".into(), 0, "begin"),
        (r#"{"__metadata__":{"a":1}}"#.into(), 0, "__metadata__"),
        (r#"{"__metadata__":null}"#.into(), 0, "__metadata__"),
        (r#"{"__metadata__":["a"]}"#.into(), 0, "__metadata__"),
        (one.replace(']', "],\"more\":1").replacen(",\"more\":1", "", 1), 4, "it is not an object of exactly"),
        (entry(r#"{"dtype":"F32","shape":[1]}"#), 4, "it is not an object of exactly"),
        (entry(r#"{"dtype":"F32","shape":[1],"offsets":[0,4]}"#), 4, "it is not an object of exactly"),
        (entry("5"), 4, "it is not an object of exactly"),
        (entry(r#"{"dtype":"F32","shape":[],"data_offsets":[0,4]}"#), 4, "not one that a model"),
        (entry(r#"{"dtype":"F32","shape":[0],"data_offsets":[0,0]}"#), 0, "not one that a model"),
        (entry(r#"{"dtype":"F8_E5M2","shape":[1],"data_offsets":[0,1]}"#), 1, "not one that a model"),
        (entry(r#"{"dtype":"I64","shape":[1],"data_offsets":[0,8]}"#), 8, "not one that a model"),
        (entry(r#"{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}"#), 4, "not one that a model"),
        (entry(r#"{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}"#), 4, "list of sizes"),
        (entry(r#"{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}"#), 4, "list of sizes"),
        (entry(r#"{"dtype":"F32","shape":1,"data_offsets":[0,4]}"#), 4, "list of sizes"),
        (entry(r#"{"dtype":"F32","shape":[1],"data_offsets":[0,4,4]}"#), 4, "two sizes"),
        (entry(r#"{"dtype":"F32","shape":[1],"data_offsets":[4,0]}"#), 4, "not inside"),
        (entry(r#"{"dtype":"F32","shape":[1],"data_offsets":[0,8]}"#), 4, "not inside"),
        (entry(r#"{"dtype":"F32","shape":[1],"data_offsets":[0,3]}"#), 4, "takes 4"),
        (one.into(), 5, "after the last"),
        (one.replace("[0,4]", "[1,5]"), 5, "hole"),
        (one.replace("}}", r#"},"b":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}}"#), 7, "overlaps"),
        (one.replace("}}", r#"},"a":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}}"#), 8, "appears twice"),
    ] {
        let e = tensors::safetensors(&file(&header, &vec![0; data])).expect_err(&header).to_string();
        assert!(e.contains(says), "{header}: {e}");
    }
    for bytes in [vec![0; 7], [&8_u64.to_le_bytes()[..], b"{}"].concat(), [&[0xFF; 8][..], b"{}"].concat()] {
        assert!(tensors::safetensors(&bytes).is_err());
    }
    for (bad, fine) in [(f32::NAN, f32::MAX), (f32::INFINITY, f32::MIN), (f32::NEG_INFINITY, f32::from_bits(1))] {
        assert!(tensors::safetensors(&pack(&[floats("a", &[2], &[0.0, fine])])).is_ok());
        assert!(tensors::safetensors(&pack(&[floats("a", &[2], &[0.0, bad])])).unwrap_err().what.contains("NaN"));
    }
    let double = |x: f64| {
        tensors::safetensors(&file(r#"{"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}"#, &x.to_le_bytes()))
            .is_ok()
    };
    assert!(double(f64::MAX) && !double(f64::NAN) && !double(f64::NEG_INFINITY));
}

#[test]
fn a_model_is_read() {
    let model = Files::honest().read().unwrap();
    assert_eq!(model.vocabulary, Some(vec![("a".into(), 0), ("b".into(), 1)]));
    assert_eq!((model.d, model.max_length, model.start), (2, Some(3), None));
    let layer = &model.layers[0];
    let (attention, feed_forward) = (layer.attention.as_ref().unwrap(), layer.feed_forward.as_ref().unwrap());
    assert_eq!((attention.hard, attention.heads, attention.size, &attention.mask), (false, 1, 1, &Mask::None));
    let Numbers::Floats(w1) = &feed_forward.w1 else { panic!() };
    assert_eq!((&w1.shape[..], w1.stored, w1.get(3)), (&[2, 2][..], Stored::F32, Dyadic { m: 3, e: 0 }));
    assert_eq!(model.head.unwrap().labels, Some(vec!["X".into(), "Y".into()]));
    assert!(Files::newer().read().is_ok());
    assert!(Files::honest().with(r#""source""#, r#""unknown""#).read().is_ok());
}

#[test]
fn configs_are_refused() {
    let refused = |from: &str, to: &str, says: &str| Files::honest().with(from, to).refused(says);
    refused("monolayer/1", "monolayer/3", "monolayer/1");
    refused(r#""format":"monolayer/1","#, "", "format");
    for d in ["0", "-2", "2.0", "\"2\"", "null", "1e0", "1048577"] {
        Files::honest().with(r#""d":2"#, &format!(r#""d":{d}"#)).read().unwrap_err();
    }
    refused(r#""f32""#, r#""f16""#, "dtype");
    refused(r#""f32""#, r#""f64""#, "stored as F32");
    refused(r#""max_length":3"#, r#""max_length":0"#, "max_length");
    refused(r#""max_length":3"#, r#""max_length":2"#, "expected [2, 2]");
    refused(r#""max_length":3"#, r#""max_length":null"#, "belongs to nothing");
    for labels in ["[]", r#"["X","X"]"#, r#"["X",1]"#, "2", r#"{"X":0,"Y":1}"#] {
        refused(r#"["X","Y"]"#, labels, "different strings");
    }
    refused(r#"["X","Y"]"#, r#"["X","Y","Z"]"#, "expected [3, 2]");
    refused(r#"["X","Y"]"#, "null", "belongs to nothing");
    refused(r#"{"hidden":1}"#, r#"{"hidden":0}"#, "pre_feed_forward");
    refused(r#"{"hidden":1}"#, "1", "pre_feed_forward");
    refused(r#""hidden":2"#, r#""hidden":-1"#, "hidden");
    refused(r#","hidden":2"#, "", "hidden");
    refused(r#""hidden":2"#, r#""hidden":0"#, "belongs to nothing");
    refused(r#""softmax""#, r#""sparsemax""#, "kind");
    refused(r#""heads":1"#, r#""heads":0"#, "heads");
    refused(r#""head_size":1"#, r#""head_size":0"#, "head_size");
    refused(r#""head_size":1"#, r#""head_size":9223372036854775807"#, "expected [1, 9223372036854775807, 2]");
    refused(r#","mask":"none""#, "", "mask");
    refused(r#""none""#, r#""all""#, "mask");
    refused(r#""layers":["#, r#""layers":[5,"#, "hidden");
    refused(r#""source""#, r#""d""#, "appears twice");
    for text in ["", "[]", "null", "5", "{}"] {
        Files { config: text.into(), ..Files::honest() }.refused("config.json");
    }
}

#[test]
fn the_newer_format_is_read_only_where_it_is_said() {
    let start = Files::newer().with(r#""source""#, r#""start":"b","source""#);
    assert_eq!(start.read().unwrap().start, Some(1));
    start.clone().with("monolayer/2", "monolayer/1").refused("monolayer/2");
    Files::honest().with(r#""source""#, r#""start":null,"source""#).refused("monolayer/2");
    Files::honest().with(r#""source""#, r#""outputs":null,"source""#).refused("monolayer/2");
    start.clone().with(r#""start":"b""#, r#""start":"c""#).refused("start");
    start.with(r#""start":"b""#, r#""start":1"#).refused("start");
    let outputs = Files::newer().with(r#"["X","Y"]"#, r#"null,"outputs":2"#);
    let head = outputs.read().unwrap().head.unwrap();
    assert_eq!(head.labels, None);
    outputs.clone().with(r#""outputs":2"#, r#""outputs":3"#).refused("expected [3, 2]");
    outputs.clone().with(r#""outputs":2"#, r#""outputs":0"#).refused("outputs");
    Files::newer().with(r#""source""#, r#""outputs":2,"source""#).refused("without labels");
    for (mask, wanted) in [
        (r#""causal""#, Some(Mask::Causal)),
        (r#"{"prefix":0}"#, Some(Mask::Prefix(0))),
        (r#"{"prefix":2}"#, Some(Mask::Prefix(2))),
        (r#"{"band":[1,0]}"#, Some(Mask::Band(1, 0))),
        (r#"{"prefix":-1}"#, None),
        (r#"{"prefix":[1]}"#, None),
        (r#"{"band":1}"#, None),
        (r#"{"band":[1]}"#, None),
        (r#"{"band":[1,2,3]}"#, None),
        (r#"{"prefix":1,"band":[1,1]}"#, None),
        (r#"{"prefix":1,"more":1}"#, None),
        ("{}", None),
        ("null", None),
        (r#"{"file":"mask.safetensors"}"#, None),
    ] {
        let found = Files::newer().with(r#""none""#, mask).read();
        assert_eq!(found.ok().map(|model| model.layers[0].attention.as_ref().unwrap().mask.clone()), wanted, "{mask}");
        assert!(mask.starts_with('"') || Files::honest().with(r#""none""#, mask).read().is_err(), "{mask}");
    }
}

#[test]
fn masks_of_files() {
    let file = |entries: &[u8]| pack(&[("mask".into(), "U8".into(), vec![2, 2], entries.to_vec())]);
    let with = |name: &str, mask: Vec<u8>| Files {
        mask: Some(mask),
        ..Files::newer().with(r#""none""#, &format!(r#"{{"file":"{name}"}}"#))
    };
    let model = with("mask.safetensors", file(&[1, 0, 1, 1])).read().unwrap();
    assert_eq!(model.layers[0].attention.as_ref().unwrap().mask, Mask::Matrix(2, vec![1, 0, 1, 1]));
    with("mask.safetensors", file(&[1, 2, 1, 1])).refused("not 0 or 1");
    with("mask.safetensors", file(&[1, 0, 1, 0])).refused("diagonal");
    for name in ["../mask.safetensors", "./mask.safetensors", "/etc/passwd", "other.safetensors", ""] {
        with(name, file(&[1, 0, 1, 1])).refused("mask");
    }
    let tensor = |name: &str, dtype: &str, shape: &[usize]| {
        let bytes = vec![1; shape.iter().product::<usize>() * if dtype == "I32" { 4 } else { 1 }];
        (name.to_owned(), dtype.to_owned(), shape.to_vec(), bytes)
    };
    for bad in [
        tensor("mask", "U8", &[2, 3]),
        tensor("mask", "U8", &[4]),
        tensor("m", "U8", &[2, 2]),
        tensor("mask", "I32", &[2, 2]),
    ] {
        with("mask.safetensors", pack(&[bad])).refused("U8 [n, n]");
    }
    with("mask.safetensors", pack(&[tensor("mask", "U8", &[1, 1]), tensor("a", "U8", &[1, 1])])).refused("U8 [n, n]");
    Files { mask: Some(file(&[1, 0, 1, 1])), ..Files::newer() }.refused("no layer names it");
}

#[test]
fn sparse_tensors_have_the_numbers_of_dense_ones() {
    let name = "layers.0.feed_forward.w1";
    let dense = Files::newer().read().unwrap();
    let sparse = |values: &[f32], columns: &[i32], rows: &[i32]| {
        let mut files = Files::newer();
        files.tensors.retain(|tensor| tensor.0 != name);
        files.tensors.push(floats(&format!("{name}.values"), &[values.len()], values));
        files.tensors.push(integers(&format!("{name}.columns"), columns));
        files.tensors.push(integers(&format!("{name}.rows"), rows));
        files
    };
    let good = sparse(&[1.0, -1.0, 3.0], &[0, 1, 1], &[0, 2, 3]);
    let mut read = good.read().unwrap();
    let w1 = |model: &Model| {
        let Some(FeedForward { w1: Numbers::Floats(w1), .. }) = &model.layers[0].feed_forward else { panic!() };
        w1.clone()
    };
    let (own, wanted) = (w1(&read), w1(&dense));
    assert_eq!((own.shape.clone(), own.len(), own.bytes.len()), (vec![2, 2], 4, 12));
    assert!((0..4).all(|i| own.get(i) == wanted.get(i)));
    assert!((0..2).all(|row| own.row(row).eq(wanted.row(row)) && own.row(row).count() == 2 - row));
    // Nothing else differs.
    read.layers[0].feed_forward.as_mut().unwrap().w1 = Numbers::Floats(wanted);
    assert_eq!(read, dense);
    // A zero that is stored is none of the numbers of a row.
    let stored = w1(&sparse(&[0.0, -0.0, 3.0], &[0, 1, 1], &[0, 2, 3]).read().unwrap());
    assert_eq!((stored.row(0).count(), stored.row(1).count()), (0, 1));
    assert!(stored.get(0).is_zero() && stored.get(1).is_zero() && stored.get(2).is_zero());
    assert!(sparse(&[1.0], &[0], &[0, 0, 1]).read().is_ok());
    good.clone().with("monolayer/2", "monolayer/1").refused("monolayer/2");
    for (columns, rows, says) in [
        (&[0, 1, 2], &[0, 2, 3][..], "below 2"),
        (&[1, 0, 1], &[0, 2, 3], "rise"),
        (&[1, 1, 1], &[0, 2, 3], "rise"),
        (&[0, 1, -1], &[0, 2, 3], "negative"),
        (&[0, 1, 1], &[0, -2, 3], "negative"),
        (&[0, 1, 1], &[1, 2, 3], "rows"),
        (&[0, 1, 1], &[0, 4, 3], "rows"),
        (&[0, 1, 1], &[0, 2, 2], "rows"),
        (&[0, 1, 1], &[0, 2, 4], "rows"),
        (&[0, 1, 1], &[0, 3], "expected [3]"),
    ] {
        sparse(&[1.0, -1.0, 3.0], columns, rows).refused(says);
    }
    sparse(&[1.0, -1.0], &[0, 1, 1], &[0, 2, 3]).refused("expected [2]");
    for part in ["values", "columns", "rows"] {
        let mut files = good.clone();
        files.tensors.retain(|tensor| tensor.0 != format!("{name}.{part}"));
        files.refused("missing");
    }
    let mut both = good.clone();
    both.tensors.push(floats(name, &[2, 2], &[1.0; 4]));
    both.refused("belongs to nothing");
    let limits = Limits { dense: 15, ..Limits::default() };
    let files = [good.config.as_bytes(), &pack(&good.tensors)];
    let e = directory::model(files, good.words.as_deref().map(str::as_bytes), None, &limits).unwrap_err();
    assert_eq!(e.limit, Some("dense"));
}

#[test]
fn only_w1_and_w2_are_stored_by_their_entries() {
    let mut head = Files::newer();
    head.tensor("head.weight").0 = "head.weight.values".into();
    head.refused("missing");
}

#[test]
fn numbers_in_fewer_bytes() {
    let name = "layers.0.feed_forward.w1";
    let store = |mut files: Files, name: &str, dtype: &str, bytes: &[u8]| {
        let tensor = files.tensor(name);
        (tensor.1, tensor.3) = (dtype.into(), bytes.to_vec());
        files
    };
    let numbers = |files: &Files| {
        let model = files.read().unwrap();
        let Some(FeedForward { w1: Numbers::Floats(w1), .. }) = &model.layers[0].feed_forward else { panic!() };
        (0..w1.len()).map(|i| w1.get(i)).collect::<Vec<_>>()
    };
    let wide = numbers(&Files::newer());
    // 1, -1, 0, 3.
    let halves = |bits: [u16; 4]| bits.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    for (dtype, bytes) in [
        ("I8", vec![1, 255, 0, 3]),
        ("F16", halves([0x3c00, 0xbc00, 0x8000, 0x4200])),
        ("BF16", halves([0x3f80, 0xbf80, 0, 0x4040])),
    ] {
        let files = store(Files::newer(), name, dtype, &bytes);
        assert_eq!(numbers(&files), wide, "{dtype}");
        files.clone().with("monolayer/2", "monolayer/1").refused(&format!("stored as {dtype}"));
        store(Files::newer(), name, dtype, &bytes[..bytes.len() - 1]).refused("takes");
        // Entries alone, with indices of 32 bits.
        let mut sparse = files.clone();
        let width = bytes.len() / 4;
        let entries = [0..width, width..2 * width, 3 * width..4 * width].map(|range| &bytes[range]).concat();
        *sparse.tensor(name) = (format!("{name}.values"), dtype.into(), vec![3], entries);
        sparse.tensors.push(integers(&format!("{name}.columns"), &[0, 1, 1]));
        sparse.tensors.push(integers(&format!("{name}.rows"), &[0, 2, 3]));
        assert_eq!(numbers(&sparse), wide, "{dtype}");
        store(sparse, &format!("{name}.columns"), "I8", &[0, 1, 1]).refused("stored as I8");
    }
    for (dtype, bits) in [("F16", 0x7c00), ("F16", 0xfc01), ("BF16", 0x7f80), ("BF16", 0xffc0)] {
        store(Files::newer(), name, dtype, &halves([0, 0, bits, 0])).refused("inf or NaN");
    }
    for dtype in ["U8", "F64", "I32", "I64", "F8_E4M3", "BOOL", "i8", "bf16"] {
        let width = if dtype == "F64" || dtype == "I64" {
            8
        } else if dtype == "I32" {
            4
        } else {
            1
        };
        store(Files::newer(), name, dtype, &vec![0; 4 * width]).refused("tensor");
    }
    // An f64 model may have single numbers, and all of its tensors in fewer bytes.
    Files::newer().with(r#""f32""#, r#""f64""#).read().unwrap();
    Files::honest().with(r#""f32""#, r#""f64""#).refused("stored as F32");
}

#[test]
fn vocabularies_and_tensors_are_refused() {
    for (words, says) in [
        (r#"{"a":0,"a":1}"#, "appears twice"),
        (r#"{"a":0,"b":0}"#, "share row"),
        (r#"{"a":0}"#, "1 words"),
        (r#"{"a":0,"b":2}"#, "no row"),
        (r#"{"a":0,"b":-1}"#, "no row"),
        (r#"{"a":0,"b":1.0}"#, "no row"),
        (r#"{"a":0,"b":"1"}"#, "no row"),
        (r#"["a","b"]"#, "not an object"),
        ("", "EOF"),
    ] {
        Files { words: Some(words.into()), ..Files::honest() }.refused(says);
    }
    Files { words: None, ..Files::honest() }.refused("missing");
    let mut files = Files::honest();
    files.tensors.remove(0);
    files.refused("without an embedding");
    files.words = None;
    assert!(files.read().unwrap().embedding.is_none());
    files.clone().with("monolayer/1", "monolayer/2").with(r#""source""#, r#""start":"a","source""#).refused("start");
    for i in 1..Files::honest().tensors.len() {
        let mut files = Files::honest();
        let name = files.tensors.remove(i).0;
        files.refused(&format!("{name:?}"));
        let mut files = Files::honest();
        files.tensors[i].2.push(1);
        files.refused("expected");
        let mut files = Files::honest();
        files.tensors[i].1 = "I32".into();
        files.refused("stored as I32");
    }
    let mut stray = Files::honest();
    stray.tensors.push(floats("stray", &[1], &[0.0]));
    stray.refused("belongs to nothing");
    let mut scalar = Files::honest();
    scalar.tensor("embedding.weight").2.clear();
    scalar.tensor("embedding.weight").3.truncate(4);
    scalar.refused("not one that a model");
}

#[test]
fn exact_numbers() {
    let read = |numbers: &str| {
        let config = br#"{"format":"monolayer/1","d":1,"dtype":"exact","layers":[],"labels":["X"]}"#;
        let weights = format!(r#"{{"head.weight":{{"shape":[1,1],"data":["0"]}},"head.bias":{numbers}}}"#);
        directory::model([config, weights.as_bytes()], None, None, &Limits::default())
    };
    let number = |text: &str| read(&format!(r#"{{"shape":[1],"data":["{text}"]}}"#));
    for text in ["0", "-1.25e3", "+.5", "2.", "1E-2", "1/3", "-6/4", "0/1", "1e20000"] {
        let model = number(text).unwrap();
        assert_eq!(model.head.unwrap().bias, Numbers::Exact(vec![1], vec![text.into()]));
    }
    let mut bad = vec!["", "-", ".", "1/0", "1/00", "1e", "e5", "1.5/2", "0x10", "1_000", "nan", "inf", "1.-5", "--1"];
    bad.extend([
        "1/-",
        "1/2/3",
        "1/-2",
        " 1",
        "1 ",
        "\u{661}",
        "1e999999999",
        "1e-99999999999999999999",
        "1..2",
        "1e1/2",
    ]);
    for text in bad {
        assert!(number(text).is_err(), "{text:?}");
    }
    assert!(number(&"9".repeat(1_000_000)).is_err());
    for numbers in [
        r#"{"shape":[1],"data":[0.5]}"#,
        r#"{"shape":[2],"data":["0"]}"#,
        r#"{"shape":[],"data":["0"]}"#,
        r#"{"shape":[0],"data":[]}"#,
        r#"{"shape":[1],"data":"0"}"#,
        r#"{"shape":[1]}"#,
        r#"{"shape":[1],"data":["0"],"more":1}"#,
        "[]",
    ] {
        assert!(read(numbers).is_err(), "{numbers}");
    }
}

#[test]
fn files_are_looked_at_before_they_are_read() {
    let dir = std::env::temp_dir().join(format!("monolayer-core-read-{}", std::process::id()));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    let files = Files::honest();
    let write = || {
        fs::write(dir.join("config.json"), &files.config).unwrap();
        fs::write(dir.join("model.safetensors"), pack(&files.tensors)).unwrap();
        fs::write(dir.join("vocabulary.json"), files.words.as_ref().unwrap()).unwrap();
    };
    write();
    let limits = Limits::default();
    let (model, hashes) = directory::open(&dir, &limits).unwrap();
    assert_eq!(model, files.read().unwrap());
    assert_eq!(hashes[0].as_deref(), Some(blake3::hash(files.config.as_bytes()).to_hex().as_str()));
    assert!(hashes[2].is_some() && hashes[3].is_none());
    for (name, limit) in [("config.json", "json"), ("model.safetensors", "bytes"), ("vocabulary.json", "json")] {
        // A sparse file takes no room on the disk, and must take none in memory.
        fs::File::options().write(true).open(dir.join(name)).unwrap().set_len(5 << 30).unwrap();
        let e = directory::open(&dir, &limits).unwrap_err();
        assert_eq!(e.limit, Some(limit), "{e}");
        assert!(e.place.ends_with(name) && e.what.contains("5368709120 bytes"), "{e}");
        write();
        #[cfg(unix)]
        for target in ["/dev/zero", "/", "/does/not/exist"] {
            fs::remove_file(dir.join(name)).unwrap();
            std::os::unix::fs::symlink(target, dir.join(name)).unwrap();
            assert!(directory::open(&dir, &limits).unwrap_err().place.ends_with(name), "{target}");
            fs::remove_file(dir.join(name)).unwrap();
            write();
        }
    }
    let e = directory::open(&dir, &Limits { labels: 1, ..limits }).unwrap_err();
    assert_eq!(e.limit, Some("labels"));
    assert_eq!(directory::open(&dir, &Limits { length: 1, ..limits }).unwrap_err().limit, Some("length"));
    fs::remove_dir_all(&dir).unwrap();
}
