//! Answers: the same as the library's, filtered before the best are taken, and honest about what was not known.

#![allow(clippy::unwrap_used)]

mod served;

use std::fs;

use axum::http::StatusCode;
use satf::interactions::OwnedId;
use satf::recommend::{Fallback, Request, Seen};
use satf::{Model, OwnedHistory};
use serde_json::{Value, json};
use served::{Served, bits, ids};

/// What the library says.
fn expected(model: &Model, history: &OwnedHistory, request: &Request) -> Vec<(String, u32)> {
    let answer = model.recommend(history, request).unwrap();
    answer.items.into_iter().map(|item| (item.item.to_string(), item.score.to_bits())).collect()
}

#[tokio::test]
async fn http_batch_and_library_give_the_same_ids_and_bits() {
    let served = Served::new(|_, _| ());
    let id = |id: &str| OwnedId::from(id);
    for name in ["dense", "sparse"] {
        let model = Model::load(served.models().join(format!("{name}.satf"))).unwrap();
        let mut together = OwnedHistory::new();
        for (item, with_previous) in [("laptop", false), ("tent", false), ("laptop sleeve", true)] {
            together.push_id(model.catalog(), item, with_previous);
        }
        let popular = Request { fallback: Fallback::Popular, ..Request::new(10) };
        let cases = [
            (
                json!({"history": ["laptop", "laptop sleeve"]}),
                model.history(["laptop", "laptop sleeve"]),
                popular.clone(),
            ),
            (json!({"history": ["laptop", ["tent", "laptop sleeve"]]}), together, popular.clone()),
            (
                json!({"history": [{"item_id": "tent", "time": 20}, {"item_id": "laptop", "time": 10}], "n": 400}),
                model.history(["laptop", "tent"]),
                Request { n: 400, ..popular.clone() },
            ),
            (
                json!({"history": ["nothing known"], "n": 3}),
                model.history(["nothing known"]),
                Request { n: 3, ..popular.clone() },
            ),
            (
                json!({"history": ["laptop"], "exclude": ["laptop sleeve"], "allow_seen": true, "explain": true,
                       "boost": [{"item_id": "tent", "multiply": 2.5, "add": 0.25}, {"item_id": "usb-c hub", "add": -0.1}]}),
                model.history(["laptop"]),
                Request {
                    exclude: vec![id("laptop sleeve")],
                    seen: Seen::Allow,
                    factors: vec![(id("tent"), 2.5)],
                    boosts: vec![(id("tent"), 0.25), (id("usb-c hub"), -0.1)],
                    explain: true,
                    ..popular.clone()
                },
            ),
            (
                json!({"history": ["laptop", "tent"], "only": ["tent", "laptop backpack", "no such thing"], "allow_seen": ["tent"]}),
                model.history(["laptop", "tent"]),
                Request {
                    only: Some(vec![id("tent"), id("laptop backpack")]),
                    repeatable: vec![id("tent")],
                    ..popular.clone()
                },
            ),
        ];
        let mut requests = Vec::new();
        let mut all_expected = Vec::new();
        for (mut body, history, request) in cases {
            body["model"] = json!(name);
            let expected = expected(&model, &history, &request);
            assert!(!expected.is_empty());
            assert_eq!(bits(&served.answer(&body.to_string()).await), expected, "{name}: {body}");
            requests.push(body);
            all_expected.push(expected);
        }
        // More than are scored together.
        let (requests, all_expected) = (vec![requests; 20].concat(), vec![all_expected; 20].concat());
        let (status, batch) =
            served.post("/v1/recommend/batch", &json!({"requests": requests}).to_string()).await;
        assert_eq!(status, StatusCode::OK, "{batch}");
        let answers: Vec<_> = batch["answers"].as_array().unwrap().iter().map(bits).collect();
        assert_eq!(answers, all_expected, "{name}");
    }
}

#[tokio::test]
async fn requests_that_come_at_once_are_answered_as_if_alone() {
    let served = Served::new(|config, _| config.limits.queue = 1_000);
    let histories = ["laptop", "tent", "laptop sleeve", "usb-c hub", "nothing known"];
    let mut alone = Vec::new();
    for item in histories {
        alone.push(served.answer(&json!({"history": [item], "model": "dense"}).to_string()).await);
    }
    let served = std::sync::Arc::new(served);
    let mut tasks = tokio::task::JoinSet::new();
    for at in 0..200 {
        let served = std::sync::Arc::clone(&served);
        tasks.spawn(async move {
            let body = json!({"history": [histories[at % histories.len()]], "model": "dense"}).to_string();
            (at, served.answer(&body).await)
        });
    }
    for (at, answer) in tasks.join_all().await {
        assert_eq!(answer, alone[at % histories.len()]);
    }
}

#[tokio::test]
async fn explanations_sum_to_the_score_and_answers_say_what_was_not_known() {
    let served = Served::new(|_, _| ());
    for model in ["dense", "sparse"] {
        let body = json!({"history": ["laptop", "??", "tent"], "explain": true, "model": model, "exclude": ["??", "tent"]});
        let answer = served.answer(&body.to_string()).await;
        assert_eq!((&answer["unknown_items"], &answer["fallback"]), (&json!(1), &Value::Null));
        assert_eq!(answer["unknown_ids"], json!(["??"]));
        assert_eq!(answer["model"], model);
        for item in answer["items"].as_array().unwrap() {
            let explanation = &item["explanation"];
            let shares = explanation["shares"].as_array().unwrap();
            assert_eq!(shares.len(), 2);
            let sum: f64 = shares.iter().map(|share| share["share"].as_f64().unwrap()).sum();
            let sum = sum + explanation["base"].as_f64().unwrap() + explanation["boost"].as_f64().unwrap();
            assert!((sum - item["score"].as_f64().unwrap()).abs() < 1e-5, "{item}");
        }
    }
    let reasons = [(r#"{"history": []}"#, "empty_history"), (r#"{"history": ["??"]}"#, "no_known_item")];
    for (body, reason) in reasons {
        let answer = served.answer(body).await;
        assert_eq!(answer["fallback"], reason);
        assert_eq!(ids(&answer).len(), 10);
    }
    let nothing = served.answer(r#"{"history": ["??"], "fallback": "empty"}"#).await;
    assert!(ids(&nothing).is_empty());
}

const ITEMS: &str = "item_id,title,category,price,in_stock
laptop,Laptop 14,computers,900,true
laptop sleeve,Sleeve,computers,25,true
laptop backpack,Backpack,bags,60,true
usb-c hub,USB-C hub,computers,35,false
wireless mouse,Mouse,computers,20,true
tent,Tent for two,camping gear,150,true
";

#[tokio::test]
async fn filters_apply_before_the_best_are_taken() {
    let served = Served::new(|config, folder| {
        let path = folder.join("items.csv");
        fs::write(&path, ITEMS).unwrap();
        config.items = Some(path);
        config.rule = Some("not in_stock = false".to_owned());
    });
    let catalog = Model::load(served.models().join("dense.satf")).unwrap().num_items();
    for model in ["dense", "sparse"] {
        let ask = |filter: &str, n: usize| {
            json!({"history": ["laptop"], "where": filter, "n": n, "model": model}).to_string()
        };
        let answer = served.answer(&ask("category = computers and price < 100", 10)).await;
        let mut found = ids(&answer);
        found.sort_unstable();
        // The hub is not in stock, and the laptop is in the history.
        assert_eq!(found, ["laptop sleeve", "wireless mouse"], "{model}");
        let answer = served.answer(&ask("category in (bags, 'camping gear') or price = 20", 2)).await;
        assert_eq!(ids(&answer).len(), 2, "{model}: exactly as many as asked for");
        let all = served.answer(&ask("category != computers", 1_000)).await;
        assert_eq!(ids(&all).len(), catalog - 4, "{model}: items without a category are not computers");
        assert!(!ids(&all).contains(&"usb-c hub"));
    }
    let (status, popular) = served.get("/v1/popular?n=3&where=price%20%3E%20100").await;
    assert_eq!((status, ids(&popular)), (StatusCode::OK, vec!["laptop", "tent"]));
    for (filter, part) in
        [("colour = red", "category, price"), ("price < cheap", "number"), ("price <", "character")]
    {
        let (status, error) = served.post("/v1/recommend", &json!({"where": filter}).to_string()).await;
        let message = error["error"]["message"].as_str().unwrap();
        assert!(status == StatusCode::UNPROCESSABLE_ENTITY && message.contains(part), "{filter}: {message}");
    }
    let (_, item) = served.get("/v1/items/usb-c%20hub").await;
    assert_eq!(item["title"], "USB-C hub");
    assert_eq!((&item["attributes"]["price"], &item["attributes"]["in_stock"]), (&json!(35), &json!(false)));
    let (_, found) = served.get("/v1/items?prefix=for%20t").await;
    assert_eq!(ids(&found), ["tent"], "words of titles are found");
    let answer = served.answer(r#"{"history": ["laptop"], "only": ["tent"]}"#).await;
    assert_eq!(answer["items"][0]["title"], "Tent for two");
}

#[tokio::test]
async fn sessions_are_remembered_with_consent_only() {
    let served = Served::new(|_, _| ());
    let both = served.answer(r#"{"history": ["laptop", "tent"], "n": 5}"#).await;
    let last = served.answer(r#"{"history": ["tent"], "n": 5}"#).await;
    assert_ne!(both["items"], last["items"]);
    let ask = async |session: &str, item: &str, consent: bool| {
        let path = format!("/v1/recommend?session_id={session}&item_id={item}&user_consent={consent}&n=5");
        let (status, answer) = served.get(&path).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        answer["items"].clone()
    };
    ask("ann", "laptop", true).await;
    assert_eq!(ask("ann", "tent", true).await, both["items"]);
    ask("bob", "laptop", false).await;
    assert_eq!(ask("bob", "tent", true).await, last["items"], "without consent nothing was kept");
    ask("ann", "tent", false).await;
    assert_eq!(
        ask("ann", "tent", true).await,
        last["items"],
        "consent withdrawn: what was kept is forgotten"
    );
    let (_, stats) = served.get("/v1/stats").await;
    assert_eq!(stats["sessions"], 2);
}

#[tokio::test]
async fn a_split_is_stable_and_a_name_wins_over_it() {
    let served = Served::new(|config, _| {
        config.split = [("dense".to_owned(), 3.0), ("sparse".to_owned(), 1.0)].into();
    });
    let mut dense = 0;
    for user in 0..400 {
        let model = served.answer(&json!({"user_id": user}).to_string()).await["model"].clone();
        let again =
            served.answer(&json!({"user_id": user.to_string(), "history": ["tent"]}).to_string()).await;
        assert_eq!(model, again["model"], "7 and \"7\" are one user");
        dense += u32::from(model == "dense");
    }
    assert!((260..340).contains(&dense), "{dense} of 400 where 300 are expected");
    assert_eq!(served.answer(r#"{"user_id": 1, "model": "sparse"}"#).await["model"], "sparse");
    assert_eq!(served.answer("{}").await["model"], "sparse", "nobody: the default model");
    let (_, models) = served.get("/v1/models").await;
    assert_eq!(models["models"][0]["share"], 0.75);
    let (status, error) = served.post("/v1/recommend", r#"{"model": "../dense"}"#).await;
    assert_eq!((status, &error["error"]["code"]), (StatusCode::NOT_FOUND, &json!("unknown_model")));
    let (_, metrics) = served.get("/metrics").await;
    assert!(metrics.as_str().unwrap().contains("satf_answers_total{model=\"dense\"}"));
}

#[tokio::test]
async fn similar_popular_items_and_models_are_told() {
    let served = Served::new(|_, _| ());
    let model = Model::load(served.models().join("dense.satf")).unwrap();
    let (_, similar) = served.get("/v1/similar?item_id=tent&n=4&model=dense").await;
    let expected: Vec<String> =
        model.similar_items("tent", 4).unwrap().items.iter().map(|item| item.item.to_string()).collect();
    assert_eq!(ids(&similar), expected);
    let (_, popular) = served.get("/v1/popular?n=2").await;
    let expected: Vec<String> =
        model.popular(&Request::new(2)).unwrap().iter().map(|item| item.item.to_string()).collect();
    assert_eq!(ids(&popular), expected);
    let (_, told) = served.get("/v1/model?model=dense").await;
    assert_eq!((&told["kind"], &told["explains"]), (&json!("d-satf"), &json!(true)));
    let attention: Vec<f64> = serde_json::from_value(told["attention"].clone()).unwrap();
    assert!(attention.len() > 5 && attention.is_sorted_by(|a, b| a >= b), "{attention:?}");
    assert!(model.checksum().unwrap().starts_with(told["version"].as_str().unwrap()));
    for (path, status) in [
        ("/v1/similar?item_id=%3F%3F", StatusCode::NOT_FOUND),
        ("/v1/similar", StatusCode::BAD_REQUEST),
        ("/v1/items/%3F%3F", StatusCode::NOT_FOUND),
        ("/v1/items/%FF", StatusCode::BAD_REQUEST),
        ("/v1/model?model=none", StatusCode::NOT_FOUND),
        ("/v1/popular?n=-1", StatusCode::BAD_REQUEST),
        ("/v1/popular?count=1", StatusCode::BAD_REQUEST),
        ("/v1/recommend?session_id=", StatusCode::UNPROCESSABLE_ENTITY),
        ("/v2/models/none/ready", StatusCode::NOT_FOUND),
        ("/v2/models/dense/ready", StatusCode::OK),
        ("/v2/models/dense", StatusCode::OK),
        ("/v2/health/ready", StatusCode::OK),
        ("/page/..%2F..%2FCargo.toml", StatusCode::NOT_FOUND),
    ] {
        assert_eq!(served.get(path).await.0, status, "{path}");
    }
}
