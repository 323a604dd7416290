//! What every stored model promises: the same lists and scores from the library, alone and in a batch, before it is
//! saved and after it is loaded; shares that sum to the score; filters that never cost a result.
//!
//! Every model of the registry is held to it, with string ids and with integer ids.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use satf::interactions::{Clock, Id, Ids, ItemIndex, Timestamp, UserIndex};
use satf::model_file::ModelFileError;
use satf::models::{ModelEntry, Quantization, Registry, Workspace, nearest};
use satf::prepare::Histories;
use satf::ranking::{Scored, rank_unseen};
use satf::recommend::{Filters, Model, Prepared, RecommendError, Request, Seen};
use serde_json::{Value, json};
use toml::Table;

/// Settings that suit a small log.
fn settings(model: &str) -> Table {
    let text = match model {
        "random" => "seed = 5",
        "pure-svd" => "rank = 8\nscaling = 0.4\nrescaled = true",
        "ga-satf" => "item_rank = 9\nuser_rank = 10\nposition_rank = 2\nmax_len = 8\nseed = 3",
        "la-satf" => "item_rank = 9\nuser_rank = 10\nmax_len = 8\nrescaled = true\nseed = 3",
        "vmis-knn" => "neighbors = 9\nsample_size = 20",
        "d-satf" => "balance = 0.25",
        "transitions" => "window = 4\nmax_len = 6\nreverse = 0.2",
        _ => "",
    };
    text.parse().unwrap()
}

const ITEMS: u32 = 30;

/// A log in which items follow their neighbours, with a catalogue of strings or of integers.
fn histories(texts: bool) -> Histories {
    let rows: Vec<(UserIndex, ItemIndex, Timestamp)> = (0..60u32)
        .flat_map(|user| {
            (0..3 + user % 9).map(move |at| {
                let item = (user * 7 + at * (1 + user % 3) + (user * at) % 5) % ITEMS;
                (UserIndex(user), ItemIndex(item), Timestamp(i64::from(user * 100 + at)))
            })
        })
        .collect();
    let users = Arc::new(Ids::Integers((0..60).collect()));
    let catalog = if texts {
        Ids::Texts((0..ITEMS).map(|item| format!("item {item:02} ü").into()).collect())
    } else {
        Ids::Integers((0..i64::from(ITEMS)).map(|item| item * 3 - 40).collect())
    };
    Histories::from_ordered_rows(users, Arc::new(catalog), Clock::Calendar, rows.into_iter())
}

fn queries() -> Vec<Vec<ItemIndex>> {
    (0..67u32)
        .map(|at| (0..at % 11).map(|place| ItemIndex((at * 13 + place * (at % 4 + 1)) % ITEMS)).collect())
        .collect()
}

fn train(entry: &ModelEntry, histories: &Histories) -> Model {
    let configured = entry.configure(&settings(entry.name)).unwrap();
    match Model::train(&configured, histories, &()) {
        Ok(model) => model,
        Err(error) => panic!("{}: {error}", entry.name),
    }
}

fn has_factors(entry: &ModelEntry) -> bool {
    ["pure-svd", "ga-satf", "la-satf", "d-satf"].contains(&entry.name)
}

fn prepared<'m>(model: &'m Model, n: usize, filters: &Filters) -> Prepared<'m> {
    model.prepare_filters(n, filters).unwrap()
}

/// Lists with the bits of their scores.
fn lists(model: &Model, filters: &Filters) -> Vec<Vec<(u32, u32)>> {
    let bits =
        |list: Vec<Scored>| list.iter().map(|scored| (scored.item.0, scored.score.to_bits())).collect();
    prepared(model, 7, filters).rank_batch(&queries()).unwrap().into_iter().map(bits).collect()
}

#[test]
fn every_model_gives_the_same_lists_in_every_way() {
    let folder = tempfile::tempdir().unwrap();
    for entry in Registry::default().models() {
        for texts in [false, true] {
            let histories = histories(texts);
            let mut kinds = vec![Quantization::None];
            if has_factors(entry) {
                kinds.extend([Quantization::Half, Quantization::Int8]);
            }
            for kind in kinds {
                let case = format!("{}, {}, texts {texts}", entry.name, kind.name());
                let mut model = train(entry, &histories);
                if kind != Quantization::None {
                    model.quantize(kind).unwrap();
                }
                let batch = lists(&model, &Filters::default());
                // Alone, one after the other in the same room.
                let mut workspace = Workspace::new();
                for (query, expected) in queries().iter().zip(&batch) {
                    let alone = prepared(&model, 7, &Filters::default()).rank(query, &mut workspace).unwrap();
                    let alone: Vec<(u32, u32)> =
                        alone.iter().map(|scored| (scored.item.0, scored.score.to_bits())).collect();
                    assert_eq!(&alone, expected, "{case}: alone");
                }
                // As the evaluation ranks.
                for (query, expected) in queries().iter().zip(&batch) {
                    let mut scores = vec![f32::NAN; ITEMS as usize];
                    model.recommender().score_batch(&[query.into()], &mut scores);
                    let ranked = rank_unseen(&mut scores, query, 7);
                    let ranked: Vec<(u32, u32)> =
                        ranked.iter().map(|scored| (scored.item.0, scored.score.to_bits())).collect();
                    assert_eq!(&ranked, expected, "{case}: as evaluated");
                }
                // After a file, and after a file of that.
                let path = folder.path().join("model.satf");
                model.save(&path).unwrap();
                let loaded = Model::load(&path).unwrap();
                assert_eq!(lists(&loaded, &Filters::default()), batch, "{case}: loaded");
                assert_eq!(loaded.manifest(), model.manifest(), "{case}");
                assert_eq!((loaded.catalog(), loaded.item_counts()), (model.catalog(), model.item_counts()));
                let again = folder.path().join("again.satf");
                loaded.save(&again).unwrap();
                assert!(
                    std::fs::read(&path).unwrap() == std::fs::read(&again).unwrap(),
                    "{case}: other bytes"
                );
                // In memory, wherever the bytes lie.
                let bytes = model.to_bytes().unwrap();
                assert!(bytes == std::fs::read(&path).unwrap(), "{case}: other bytes in memory");
                let read = Model::from_bytes("bytes", bytes, &Registry::default()).unwrap();
                assert_eq!(lists(&read, &Filters::default()), batch, "{case}: from bytes");
                if let Some((factors, columns)) = read.recommender().item_factors() {
                    assert_eq!(factors.len(), columns * ITEMS as usize, "{case}");
                }
                // What is alike, and why.
                for item in (0..ITEMS).map(ItemIndex) {
                    let similar = model.similar_items_indexed(item, 5);
                    assert_eq!(similar, loaded.similar_items_indexed(item, 5), "{case}");
                    match similar {
                        Ok(similar) => {
                            let others = similar.items.iter().all(|other| other.item != item);
                            assert!(similar.items.len() == 5 && others, "{case}");
                        }
                        Err(error) => {
                            let knows_none = ["mp", "random"].contains(&entry.name);
                            let said = matches!(error, RecommendError::NoSimilarities { .. });
                            assert!(knows_none && said, "{case}: {error}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn shares_sum_to_the_score() {
    let histories = histories(true);
    for entry in Registry::default().models() {
        let model = train(entry, &histories);
        for query in queries() {
            for scored in
                prepared(&model, 10, &Filters::default()).rank(&query, &mut Workspace::new()).unwrap()
            {
                let explanation = model.explain_indexed((&query).into(), scored.item).unwrap();
                assert_eq!(explanation.score.to_bits(), scored.score.to_bits(), "{}", entry.name);
                let sum = explanation.base + explanation.shares.iter().map(|share| share.share).sum::<f64>();
                let size = explanation.shares.iter().map(|share| share.share.abs()).sum::<f64>()
                    + explanation.base.abs();
                let off = (sum - f64::from(scored.score)).abs();
                assert!(off <= 1e-5 * size.max(1e-30), "{}: {sum} {}", entry.name, scored.score);
                let items: Vec<ItemIndex> = explanation.shares.iter().map(|share| share.item).collect();
                assert_eq!(items, query, "{}", entry.name);
            }
        }
    }
}

#[test]
fn filters_apply_before_the_best_are_taken() {
    let model = train(&Registry::default().find("transitions").unwrap(), &histories(true));
    let history = [ItemIndex(3), ItemIndex(4)];
    let items = |filters: &Filters, n: usize| -> Vec<u32> {
        let list = prepared(&model, n, filters).rank(&history, &mut Workspace::new()).unwrap();
        list.iter().map(|scored| scored.item.0).collect()
    };
    let all = items(&Filters::default(), 100);
    assert_eq!(all.len(), ITEMS as usize - 2);
    // The five best taken out: the next ones follow, in their order.
    let exclude: Vec<ItemIndex> = all[..5].iter().copied().map(ItemIndex).collect();
    assert_eq!(items(&Filters { exclude, ..Filters::default() }, 4), all[5..9]);
    // The worst ones only, seen ones among them.
    let only: Vec<ItemIndex> = all[25..].iter().copied().chain([3]).map(ItemIndex).collect();
    let filters = Filters { only: Some(only), ..Filters::default() };
    assert_eq!(items(&filters, 10), all[25..]);
    assert!(items(&Filters { seen: Seen::Allow, ..filters }, 10).contains(&3));
    assert_eq!(items(&Filters { only: Some(Vec::new()), ..Filters::default() }, 10), [0u32; 0]);
    // The worst one, put first.
    let boosts = vec![(ItemIndex(all[27]), 1e9)];
    assert_eq!(items(&Filters { boosts, ..Filters::default() }, 1), all[27..]);

    let refused = |filters: Filters| model.prepare_filters(3, &filters).err().unwrap();
    let outside = Filters { exclude: vec![ItemIndex(ITEMS)], ..Filters::default() };
    assert!(matches!(refused(outside), RecommendError::UnknownItem { place: "exclude", item: ITEMS, .. }));
    let odd = Filters { boosts: vec![(ItemIndex(0), f32::NAN)], ..Filters::default() };
    assert!(refused(odd).to_string().contains("boost of item 'item 00 ü' = NaN: expected a finite number"));
    let odd = Filters { factors: vec![(ItemIndex(1), 0.0)], ..Filters::default() };
    assert!(refused(odd).to_string().contains("factor of item 'item 01 ü' = 0"));
    let error =
        prepared(&model, 3, &Filters::default()).rank(&[ItemIndex(99)], &mut Workspace::new()).unwrap_err();
    assert_eq!(error.to_string(), "history: item 99 is outside the catalogue of 30 items");
}

#[test]
fn unknown_items_are_counted_and_popular_ones_follow_counts() {
    let model = train(&Registry::default().find("mp").unwrap(), &histories(false));
    let known = model.history([Id::Integer(-40), Id::Text("-37"), Id::Integer(7_000), Id::Text("tent")]);
    assert_eq!((known.items(), known.unknown()), (&[ItemIndex(0), ItemIndex(1)][..], 2));
    let popular = model.popular(&Request::new(ITEMS as usize)).unwrap();
    assert!(popular.is_sorted_by(|a, b| (b.score, &a.item) <= (a.score, &b.item)));
    assert_eq!(popular[0].score as u32, *model.item_counts().iter().max().unwrap());
}

#[test]
fn models_without_factors_cannot_be_quantized() {
    let histories = histories(false);
    for entry in Registry::default().models().iter().filter(|entry| !has_factors(entry)) {
        let message = train(entry, &histories).quantize(Quantization::Half).unwrap_err().to_string();
        assert!(message.contains(entry.name) && message.contains("no item factors"), "{message}");
    }
}

fn committed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files/version_1")
}

/// Every committed model: its file, and what is in it.
fn committed_cases() -> Vec<(ModelEntry, Quantization)> {
    let registry = Registry::default();
    let plain = registry.models().iter().map(|entry| (*entry, Quantization::None));
    let rounded = [("la-satf", Quantization::Half), ("la-satf", Quantization::Int8)];
    plain.chain(rounded.map(|(name, kind)| (registry.find(name).unwrap(), kind))).collect()
}

fn file_name(entry: &ModelEntry, kind: Quantization) -> String {
    format!("{}.{}.satf", entry.name, kind.name())
}

/// Lists as the committed record has them.
fn record(model: &Model) -> Value {
    let lists = prepared(model, 5, &Filters::default()).rank_batch(&queries()[..12]).unwrap();
    let list = |list: &Vec<Scored>| -> Value {
        list.iter().map(|scored| json!([model.catalog().get(scored.item.get()), scored.score])).collect()
    };
    lists.iter().map(list).collect()
}

/// Writes the committed files that are not there yet; those that are stay as they are. Run by hand, once a format version and once a
/// model.
#[test]
#[ignore = "writes tests/files/version_1"]
fn write_the_committed_files() {
    std::fs::create_dir_all(committed()).unwrap();
    let records = std::fs::read(committed().join("lists.json")).unwrap_or_else(|_| b"{}".to_vec());
    let mut records: serde_json::Map<String, Value> = serde_json::from_slice(&records).unwrap();
    for (at, (entry, kind)) in committed_cases().into_iter().enumerate() {
        if committed().join(file_name(&entry, kind)).exists() {
            continue;
        }
        let mut model = train(&entry, &histories(at % 2 == 0));
        if kind != Quantization::None {
            model.quantize(kind).unwrap();
        }
        model.save(committed().join(file_name(&entry, kind))).unwrap();
        records.insert(file_name(&entry, kind), record(&model));
    }
    std::fs::write(committed().join("lists.json"), serde_json::to_string(&records).unwrap() + "\n").unwrap();
}

#[test]
fn files_of_version_1_are_read_and_give_their_lists() {
    let records: Value =
        serde_json::from_slice(&std::fs::read(committed().join("lists.json")).unwrap()).unwrap();
    for (entry, kind) in committed_cases() {
        let name = file_name(&entry, kind);
        let model = Model::load(committed().join(&name)).unwrap();
        assert_eq!((model.manifest().model.as_str(), model.manifest().quantization), (entry.name, kind));
        let (ours, theirs) = (record(&model), &records[&name]);
        for (ours, theirs) in ours.as_array().unwrap().iter().zip(theirs.as_array().unwrap()) {
            let (ours, theirs) = (ours.as_array().unwrap(), theirs.as_array().unwrap());
            assert_eq!(ours.len(), theirs.len(), "{name}");
            for (ours, theirs) in ours.iter().zip(theirs) {
                assert_eq!(ours[0], theirs[0], "{name}");
                let (ours, theirs) = (ours[1].as_f64().unwrap(), theirs[1].as_f64().unwrap());
                assert!((ours - theirs).abs() <= 1e-5 * theirs.abs().max(1e-3), "{name}: {ours} {theirs}");
            }
        }
    }
}

#[test]
fn what_was_learned_is_kept_and_files_from_before_tell_what_they_can() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.satf");
    for entry in Registry::default().models() {
        let model = train(entry, &histories(true));
        model.save(&path).unwrap();
        let loaded = Model::load(&path).unwrap();
        assert_eq!(loaded.learned(), model.learned(), "{}", entry.name);
        assert!(model.learned().values().all(Option::is_some), "{}", entry.name);
        let learns = has_factors(entry);
        assert_eq!(model.manifest().learned.is_empty(), !learns, "{}", entry.name);
    }
    let before = Model::load(committed().join("d-satf.none.satf")).unwrap();
    assert!(before.manifest().learned.is_empty());
    let learned = before.learned();
    let unknown = ["distance_decay", "target_power", "together", "trend"];
    assert!(unknown.iter().all(|key| learned[*key].is_none()), "{learned:?}");
    assert!(learned["recency_decay"] == Some(1.0) && learned["basket_order"] == Some(0.0), "{learned:?}");
}

#[test]
fn bytes_that_are_no_model_are_refused() {
    let histories = histories(true);
    let entry = Registry::default().find("transitions").unwrap();
    let good = train(&entry, &histories).to_bytes().unwrap();
    let read = |bytes: &[u8]| {
        Model::from_bytes("what came", bytes.to_vec(), &Registry::default()).err().unwrap().to_string()
    };
    for length in [0, 7, 100, 101, good.len() / 2, good.len() - 1] {
        assert!(read(&good[..length]).starts_with("what came: "), "{length}");
    }
    let mut changed = good.clone();
    *changed.last_mut().unwrap() ^= 1;
    assert!(read(&changed).contains("checksum"));
}

#[test]
fn what_is_no_model_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("thing.satf");
    let message = |content: &[u8]| {
        std::fs::write(&path, content).unwrap();
        Model::load(&path).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert!(message(b"").contains("it is empty"));
    assert!(message(&[b'x'; 300]).contains("not a satf model file"));
    let mut safetensors = 2u64.to_le_bytes().to_vec();
    safetensors.extend(*b"{}");
    safetensors.extend([0; 200]);
    assert!(message(&safetensors).contains("a safetensors file of another program"));
    assert!(matches!(Model::load(folder.path().join("none.satf")), Err(ModelFileError::Io { .. })));
    assert!(Model::load(folder.path()).is_err());
    assert_eq!(
        nearest("la-stf", Registry::default().models().iter().map(|entry| entry.name)),
        Some("la-satf")
    );
}

/// Where the values of a file begin, and the header before them.
fn header(bytes: &[u8]) -> (usize, Value) {
    let end = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    (end, serde_json::from_slice(&bytes[8..end]).unwrap())
}

#[test]
fn arrays_are_aligned_and_files_where_they_are_not_are_read_too() {
    const CHECKSUM: std::ops::Range<usize> = 37..101;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.satf");
    for entry in Registry::default().models() {
        for texts in [false, true] {
            let model = train(entry, &histories(texts));
            model.save(&path).unwrap();
            let bytes = std::fs::read(&path).unwrap();
            let (start, header) = header(&bytes);
            for (name, array) in
                header.as_object().unwrap().iter().filter(|(name, _)| *name != "__metadata__")
            {
                let dtype = array["dtype"].as_str().unwrap();
                let bits: u64 = dtype.trim_start_matches(char::is_alphabetic).parse().unwrap();
                let at = start as u64 + array["data_offsets"][0].as_u64().unwrap();
                assert!(at.is_multiple_of(bits / 8), "{}: {name} of {dtype} at byte {at}", entry.name);
            }
            let expected = lists(&model, &Filters::default());
            for spaces in [1, 2, 4] {
                let mut moved = bytes[..start].to_vec();
                moved[..8].copy_from_slice(&(start as u64 - 8 + spaces).to_le_bytes());
                moved.extend((0..spaces).map(|_| b' '));
                moved.extend(&bytes[start..]);
                moved[CHECKSUM].fill(b'0');
                let checksum = blake3::hash(&moved).to_hex();
                moved[CHECKSUM].copy_from_slice(checksum.as_bytes());
                let path = folder.path().join("moved.satf");
                std::fs::write(&path, moved).unwrap();
                let loaded = Model::load(&path).unwrap();
                assert_eq!(lists(&loaded, &Filters::default()), expected, "{}, {spaces} spaces", entry.name);
                loaded.save(folder.path().join("again.satf")).unwrap();
                assert!(std::fs::read(folder.path().join("again.satf")).unwrap() == bytes, "{}", entry.name);
            }
        }
    }
}

#[test]
fn a_model_outlives_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.satf");
    for entry in Registry::default().models() {
        let model = train(entry, &histories(true));
        let expected = lists(&model, &Filters::default());
        model.save(&path).unwrap();
        let loaded = Model::load(&path).unwrap();
        // Replaced by another, even by what it is itself, and removed.
        train(entry, &histories(false)).save(&path).unwrap();
        assert_eq!(lists(&loaded, &Filters::default()), expected, "{}", entry.name);
        loaded.save(&path).unwrap();
        assert_eq!(lists(&Model::load(&path).unwrap(), &Filters::default()), expected, "{}", entry.name);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(lists(&loaded, &Filters::default()), expected, "{}", entry.name);
    }
}

#[test]
fn the_python_package_reads_the_tensors() {
    let script = "import sys, json\nfrom safetensors import safe_open\n\
        with safe_open(sys.argv[1], framework='np') as f:\n    \
        m = json.loads(f.metadata()['manifest'])\n    \
        w = f.get_tensor('item_factors')\n    ids = f.get_tensor('item_ids')\n    \
        print(json.dumps([m['model'], list(w.shape), str(w.dtype), float(w.astype('float64').sum()), ids.tolist()]))";
    let python = std::env::var("SATF_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has_package = Command::new(&python).args(["-c", "import safetensors, numpy"]).output();
    if !has_package.is_ok_and(|output| output.status.success()) {
        eprintln!("{python} has no safetensors and numpy: nothing is checked");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for kind in [Quantization::None, Quantization::Half, Quantization::Int8] {
        let mut model = train(&Registry::default().find("la-satf").unwrap(), &histories(false));
        model.quantize(kind).unwrap();
        let path = folder.path().join("model.satf");
        model.save(&path).unwrap();
        let output = Command::new(&python).args(["-c", script]).arg(&path).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
        let (rank, dtype) = match kind {
            Quantization::None => (9, "float32"),
            Quantization::Half => (9, "float16"),
            Quantization::Int8 => (9, "int8"),
        };
        assert_eq!((&seen[0], &seen[1], &seen[2]), (&json!("la-satf"), &json!([30, rank]), &json!(dtype)));
        let Ids::Integers(ids) = &**model.catalog() else { unreachable!() };
        assert_eq!(seen[4], json!(ids));
        assert!(seen[3].as_f64().unwrap().is_finite());
    }
}
