//! A model server with clients of its gRPC and REST interfaces.
#![allow(clippy::unwrap_used)]

mod client;
mod fixtures;

use client::{
    MODEL, PREDICTION, Spec, call, channel, examples, field, http, http_with, json, of, predict,
    request,
};
use ferroflow_cluster::rpc::code;
use ferroflow_core::Tensor;
use ferroflow_graph::wire::SegmentWriter;
use ferroflow_serve::{BatchingOptions, ModelSource, ModelsOptions, VersionPolicy, VersionState};
use ferroflow_train::{Example, RecordWriter};
use fixtures::{
    DEADLINE, Folder, Running, export_examples, export_half_plus, export_lookup, floats,
};
use serde_json::json as value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// Checks for versions often.
fn quick() -> ModelsOptions {
    ModelsOptions { poll: Duration::from_millis(10), ..ModelsOptions::default() }
}

async fn half_plus_two(folder: &Folder) -> Running {
    export_half_plus(2.0, &folder.join("half/1"));
    Running::start(vec![ModelSource::new("half", folder.join("half"))], quick()).await
}

/// Waits until `is` holds.
async fn until(what: &str, mut is: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !is().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(DEADLINE, wait).await.unwrap_or_else(|_| panic!("waited for {what}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn sites_in_a_browser_of_this_host_get_no_predictions() {
    let folder = Folder::new();
    let server = half_plus_two(&folder).await;
    let (path, body) = ("/v1/models/half:predict", r#"{"instances": [1.0]}"#);
    let status =
        async |headers: String| http_with(server.rest, &headers, "POST", path, body).await.0;
    let own = format!("Host: {}", server.rest);
    assert_eq!(status("Host: evil.example".into()).await, 421, "a name that leads here");
    assert_eq!(status(format!("{own}\r\nOrigin: http://evil.example")).await, 403);
    assert_eq!(status(format!("{own}\r\nOrigin: http://{}", server.rest)).await, 200);
    assert_eq!(status(own).await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn both_interfaces_answer_alike() {
    let folder = Folder::new();
    let server = half_plus_two(&folder).await;
    let grpc = channel(server.grpc);
    let (version, outputs) =
        predict(&grpc, of("half"), &[("x", floats(&[1.0, 2.0, 5.0]))], &[]).await.unwrap();
    assert_eq!(version, 1);
    assert_eq!(outputs[0].0, "y");
    assert_eq!(outputs[0].1.as_slice::<f32>().unwrap(), [2.5, 3.0, 4.5]);
    let path = "/v1/models/half:predict";
    let row = json(server.rest, "POST", path, r#"{"instances": [1.0, 2.0, 5.0]}"#).await;
    assert_eq!(row, (200, value!({"predictions": [2.5, 3.0, 4.5]})));
    let column = json(server.rest, "POST", path, r#"{"inputs": {"x": [1, 2, 5]}}"#).await;
    assert_eq!(column, (200, value!({"outputs": [2.5, 3.0, 4.5]})));
    let total = r#"{"signature_name": "total", "inputs": [2.0]}"#;
    let total = json(server.rest, "POST", "/v1/models/half/versions/1:predict", total).await;
    assert_eq!(total, (200, value!({"outputs": 3.0})));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn models_describe_themselves() {
    let folder = Folder::new();
    let server = half_plus_two(&folder).await;
    let grpc = channel(server.grpc);
    let (status, metadata) = json(server.rest, "GET", "/v1/models/half/metadata", "").await;
    assert_eq!(status, 200);
    assert_eq!(
        metadata["model_spec"],
        value!({"name": "half", "signature_name": "", "version": "1"})
    );
    let signature = &metadata["metadata"]["signature_def"]["signature_def"]["serving_default"];
    assert_eq!(signature["method_name"], "tensorflow/serving/predict");
    assert_eq!(signature["inputs"]["x"]["dtype"], "DT_FLOAT");
    assert_eq!(signature["inputs"]["x"]["tensor_shape"]["dim"][0]["size"], "-1");
    let mut message = SegmentWriter::new();
    message.bytes(1, of("half").encode());
    message.item(2, "signature_def");
    let path = format!("{PREDICTION}GetModelMetadata");
    let answer = call(&grpc, &path, message.finish().to_bytes());
    let entry = field(answer.await.unwrap(), 2).remove(0);
    assert_eq!(field(entry.clone(), 1)[0], "signature_def");
    let any = field(entry, 2).remove(0);
    assert_eq!(field(any, 1)[0], "type.googleapis.com/tensorflow.serving.SignatureDefMap");
    let (status, states) = json(server.rest, "GET", "/v1/models/half", "").await;
    let ok = value!({"error_code": "OK", "error_message": ""});
    let available = value!([{"version": "1", "state": "AVAILABLE", "status": ok}]);
    assert_eq!((status, &states["model_version_status"]), (200, &available));
    let health = call(&grpc, "/grpc.health.v1.Health/Check", Default::default()).await.unwrap();
    assert_eq!(health[..], [8, 1]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_have_the_codes_of_tensorflow_serving() {
    let folder = Folder::new();
    let server = half_plus_two(&folder).await;
    let grpc = channel(server.grpc);
    let x = || vec![("x", floats(&[1.0]))];
    let two = |name| vec![("x", floats(&[1.0])), (name, floats(&[1.0]))];
    let version = Spec { version: Some(7), ..of("half") };
    let label = Spec { label: Some("stable"), ..of("half") };
    let signature = Spec { signature: "none", ..of("half") };
    let double = vec![("x", Tensor::vector(&[1.0f64]))];
    let cases: [(_, Vec<(&str, Tensor)>, &[&str], i32); 10] = [
        (of("other"), x(), &[], code::NOT_FOUND),
        (of(""), x(), &[], code::INVALID_ARGUMENT),
        (version, x(), &[], code::NOT_FOUND),
        (label, x(), &[], code::INVALID_ARGUMENT),
        (signature, x(), &[], code::FAILED_PRECONDITION),
        (of("half"), vec![], &[], code::INVALID_ARGUMENT),
        (of("half"), two("z"), &[], code::INVALID_ARGUMENT),
        (of("half"), double, &[], code::INVALID_ARGUMENT),
        (of("half"), x(), &["z"], code::INVALID_ARGUMENT),
        (of("half"), x(), &["y", "y"], code::INVALID_ARGUMENT),
    ];
    for (i, (spec, inputs, outputs, expected)) in cases.into_iter().enumerate() {
        let e = predict(&grpc, spec, &inputs, outputs).await.unwrap_err();
        assert_eq!(e.code, expected, "case {i}: {e}");
    }
    let unspecified = call(&grpc, &format!("{PREDICTION}Predict"), Default::default()).await;
    assert_eq!(unspecified.unwrap_err().code, code::INVALID_ARGUMENT);
    let classify = examples(of("half"), &[Example::new().encode()], None);
    let e = call(&grpc, &format!("{PREDICTION}Classify"), classify).await.unwrap_err();
    assert_eq!(e.code, code::INVALID_ARGUMENT);
    let e = call(&grpc, &format!("{PREDICTION}PredictStreamed"), Default::default()).await;
    assert_eq!(e.unwrap_err().code, code::UNIMPLEMENTED);
    for (method, path, body, expected) in [
        ("POST", "/v1/models/other:predict", "{}", 404),
        ("POST", "/v1/models/half/versions/7:predict", r#"{"instances": [1]}"#, 404),
        ("POST", "/v1/models/half:predict", "{", 400),
        ("POST", "/v1/models/half:predict", r#"{"instances": ["a"]}"#, 400),
        ("POST", "/v1/models/half:predict", r#"{"instances": [{"z": 1}]}"#, 400),
        ("GET", "/v1/models/half:predict", "", 400),
        ("GET", "/v1/models/other", "", 404),
        ("GET", "/v2/models/half", "", 400),
    ] {
        let (status, answer) = json(server.rest, method, path, body).await;
        assert_eq!(status, expected, "{method} {path}: {answer}");
        assert!(answer["error"].as_str().is_some_and(|text| !text.is_empty()), "{answer}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_swap_under_load_loses_nothing() {
    let folder = Folder::new();
    let server = half_plus_two(&folder).await;
    let (done, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let seen: Arc<[AtomicI64]> = (0..4).map(|_| AtomicI64::new(0)).collect();
    let clients: Vec<_> = (0..seen.len())
        .map(|client| {
            let (done, answered, grpc) = (done.clone(), answered.clone(), channel(server.grpc));
            let seen = seen.clone();
            tokio::spawn(async move {
                while !done.load(Ordering::Relaxed) {
                    let inputs = [("x", floats(&[4.0]))];
                    let (version, outputs) =
                        predict(&grpc, of("half"), &inputs, &[]).await.unwrap();
                    let y = outputs[0].1.as_slice::<f32>().unwrap()[0];
                    assert_eq!(y, 2.0 + version as f32 + 1.0);
                    let last = seen[client].swap(version, Ordering::Relaxed);
                    assert!(version >= last, "version {version} after {last}");
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for version in 2..5 {
        let before = answered.load(Ordering::Relaxed);
        let staged = folder.join(&format!("staged-{version}"));
        tokio::task::spawn_blocking(move || {
            export_half_plus(version as f32 + 1.0, &staged);
            staged
        })
        .await
        .map(|staged| std::fs::rename(staged, folder.join(&format!("half/{version}"))).unwrap())
        .unwrap();
        until("the new version", async || {
            let (_, states) = json(server.rest, "GET", "/v1/models/half", "").await;
            let states = states["model_version_status"].as_array().unwrap();
            let state = |at: usize| states.get(at).map(|s| s["state"].clone());
            state(0) == Some("AVAILABLE".into())
                && state(1) == Some("END".into())
                && states.len() == version as usize
        })
        .await;
        until("requests", async || answered.load(Ordering::Relaxed) > before + 20).await;
    }
    let last = || seen.iter().all(|version| version.load(Ordering::Relaxed) == 4);
    until("the last version at every client", async || last()).await;
    done.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_cannot_be_loaded_leaves_the_old_one() {
    let folder = Folder::new();
    let server = half_plus_two(&folder).await;
    let grpc = channel(server.grpc);
    std::fs::create_dir_all(folder.join("half/2")).unwrap();
    std::fs::write(folder.join("half/2/saved_model.pb"), b"not a model").unwrap();
    let state = |at: usize| {
        let states = json(server.rest, "GET", "/v1/models/half", "");
        async move { states.await.1["model_version_status"][at]["state"].clone() }
    };
    until("the failure", async || state(0).await == "END").await;
    let inputs = [("x", floats(&[4.0]))];
    assert_eq!(predict(&grpc, of("half"), &inputs, &[]).await.unwrap().0, 1);
    // The model is tried again when its files have changed.
    std::fs::remove_dir_all(folder.join("half/2")).unwrap();
    export_half_plus(3.0, &folder.join("half/2"));
    until("the second try", async || state(0).await == "AVAILABLE").await;
    assert_eq!(predict(&grpc, of("half"), &inputs, &[]).await.unwrap().0, 2);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_and_new_configurations() {
    let folder = Folder::new();
    export_half_plus(2.0, &folder.join("half/1"));
    export_half_plus(3.0, &folder.join("half/2"));
    let labels = [("stable".to_string(), 1)].into();
    let half = ModelSource {
        versions: VersionPolicy::All,
        labels,
        ..ModelSource::new("half", folder.join("half"))
    };
    let server = Running::start(vec![half.clone()], quick()).await;
    let grpc = channel(server.grpc);
    let stable = Spec { label: Some("stable"), ..of("half") };
    let inputs = [("x", floats(&[0.0]))];
    assert_eq!(predict(&grpc, stable, &inputs, &[]).await.unwrap().0, 1);
    assert_eq!(predict(&grpc, of("half"), &inputs, &[]).await.unwrap().0, 2);
    let path = "/v1/models/half/labels/stable:predict";
    let rest = json(server.rest, "POST", path, r#"{"instances": [0]}"#).await;
    assert_eq!(rest, (200, value!({"predictions": [2.0]})));
    // A label must name a version that serves.
    let wrong = ModelSource { labels: [("stable".to_string(), 9)].into(), ..half.clone() };
    assert!(server.models.set(vec![wrong]).await.is_err());
    assert_eq!(predict(&grpc, stable, &inputs, &[]).await.unwrap().0, 1);
    // A request with another configuration: another model instead of this one.
    export_lookup(&folder.join("lookup/3"));
    let mut model = SegmentWriter::new();
    model.string(1, "table");
    model.string(2, &folder.join("lookup").display().to_string());
    model.string(4, "tensorflow");
    let mut nested = model.finish().to_bytes();
    for field in [1, 1, 1] {
        let mut outer = SegmentWriter::new();
        outer.bytes(field, nested);
        nested = outer.finish().to_bytes();
    }
    call(&grpc, &format!("{MODEL}HandleReloadConfigRequest"), nested).await.unwrap();
    let rows =
        predict(&grpc, of("table"), &[("i", Tensor::vector(&[2i32, 0]))], &[]).await.unwrap();
    assert_eq!(rows.0, 3);
    assert_eq!(rows.1[0].1.as_slice::<f32>().unwrap(), [5.0, 6.0, 1.0, 2.0]);
    let gone = predict(&grpc, of("half"), &inputs, &[]).await.unwrap_err();
    assert_eq!(gone.code, code::NOT_FOUND);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn examples_are_classified_and_regressed() {
    let folder = Folder::new();
    export_examples(&folder.join("examples/1"));
    let source = ModelSource::new("examples", folder.join("examples"));
    let server = Running::start(vec![source], quick()).await;
    let grpc = channel(server.grpc);
    let example = |x: f32| Example::new().floats("x", &[x]).encode();
    let context = Example::new().floats("bias", &[1.0]).floats("x", &[-5.0]).encode();
    let value_of = Spec { signature: "value", ..of("examples") };
    let body = examples(value_of, &[example(1.0), example(2.0)], Some(context));
    let answer = call(&grpc, &format!("{PREDICTION}Regress"), body).await.unwrap();
    let regressions = field(field(answer, 1).remove(0), 1);
    let floats: Vec<f32> =
        regressions.iter().map(|r| f32::from_le_bytes(r[1..5].try_into().unwrap())).collect();
    assert_eq!(floats, [2.0, 3.0]);
    let body = r#"{"examples": [{"x": 1.5, "bias": 1.0}, {"x": [2]}]}"#;
    let (status, _) = json(server.rest, "POST", "/v1/models/examples:classify", body).await;
    // The second x is an integer, but the model wants a float.
    assert_eq!(status, 400);
    let body = r#"{"context": {"bias": 1.5}, "examples": [{"x": 1.0}, {"x": 2.5, "bias": 0.25}]}"#;
    let classes = json(server.rest, "POST", "/v1/models/examples:classify", body).await;
    let expected = value!([[["low", 2.5], ["high", 5.0]], [["low", 2.75], ["high", 5.5]]]);
    assert_eq!(classes, (200, value!({"results": expected})));
    let body = r#"{"signature_name": "value", "examples": [{"x": 1.5}]}"#;
    let values = json(server.rest, "POST", "/v1/models/examples:regress", body).await;
    assert_eq!(values, (200, value!({"results": [11.5]})));
    let (status, _) =
        json(server.rest, "POST", "/v1/models/examples:regress", r#"{"examples": [{"x": 1.5}]}"#)
            .await;
    assert_eq!(status, 400);
    // Both signatures at once.
    let mut message = SegmentWriter::new();
    for (spec, method) in [(of("examples"), "classify"), (value_of, "regress")] {
        let mut task = SegmentWriter::new();
        task.bytes(1, spec.encode());
        task.string(2, &format!("tensorflow/serving/{method}"));
        message.bytes(1, task.finish().to_bytes());
    }
    message.bytes(2, field(examples(of("examples"), &[example(1.0)], None), 2).remove(0));
    let path = format!("{PREDICTION}MultiInference");
    let answer = call(&grpc, &path, message.finish().to_bytes());
    let results = field(answer.await.unwrap(), 1);
    assert_eq!(results.len(), 2);
    assert_eq!(field(results[0].clone(), 2).len(), 1);
    assert_eq!(field(results[1].clone(), 3).len(), 1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_batched_and_a_bad_one_fails_alone() {
    let folder = Folder::new();
    export_lookup(&folder.join("lookup/1"));
    export_half_plus(2.0, &folder.join("half/1"));
    let batching = BatchingOptions {
        max_batch_size: 8,
        allowed_batch_sizes: vec![4, 8],
        // Only a full batch runs before the test's deadline.
        timeout: DEADLINE * 2,
        threads: 1,
        ..BatchingOptions::default()
    };
    let loading = ModelsOptions { batching: Some(batching), ..quick() };
    let sources = ["lookup", "half"].map(|name| ModelSource::new(name, folder.join(name)));
    let server = Running::start(sources.to_vec(), loading).await;
    let grpc = channel(server.grpc);
    let ask = |index: i32| {
        let grpc = grpc.clone();
        tokio::spawn(async move {
            let inputs = [("i", Tensor::vector(&[index, 0]))];
            predict(&grpc, of("lookup"), &inputs, &[]).await
        })
    };
    let asked = [1, 2, 77, 0].map(ask);
    for (answer, expected) in asked.into_iter().zip([Some(3.0), Some(5.0), None, Some(1.0)]) {
        match (answer.await.unwrap(), expected) {
            (Ok((_, outputs)), Some(first)) => {
                let values = outputs[0].1.as_slice::<f32>().unwrap();
                assert_eq!(values, [first, first + 1.0, 1.0, 2.0]);
            }
            (Err(e), None) => assert_eq!(e.code, code::INVALID_ARGUMENT, "{e}"),
            (other, _) => panic!("{other:?} instead of {expected:?}"),
        }
    }
    let nine = [("i", Tensor::vector(&[0i32; 9]))];
    let e = predict(&grpc, of("lookup"), &nine, &[]).await.unwrap_err();
    assert_eq!(e.code, code::INVALID_ARGUMENT);
    // A result without rows cannot be split between the requests of a batch.
    let total = Spec { signature: "total", ..of("half") };
    let eight = [("x", floats(&[0.0; 8]))];
    let e = predict(&grpc, total, &eight, &[]).await.unwrap_err();
    assert_eq!(e.code, code::FAILED_PRECONDITION);
    let (_, _, metrics) = http(server.rest, "GET", "/metrics", "").await;
    let joined = r#"ferroflow_serve_batch_rows_sum{model="lookup"} 8"#;
    assert!(metrics.contains(joined), "{metrics}");
    let refused = r#"ferroflow_serve_requests_total{model="lookup",method="Predict",code="INVALID_ARGUMENT"} 2"#;
    assert!(metrics.contains(refused), "{metrics}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn large_requests_are_split_and_full_queues_refuse() {
    let folder = Folder::new();
    export_half_plus(2.0, &folder.join("half/1"));
    let batching = BatchingOptions {
        max_batch_size: 4,
        split_large_batches: true,
        max_enqueued_batches: 2,
        timeout: DEADLINE * 2,
        ..BatchingOptions::default()
    };
    let loading = ModelsOptions { batching: Some(batching), ..quick() };
    let half = ModelSource::new("half", folder.join("half"));
    let server = Running::start(vec![half], loading).await;
    let grpc = channel(server.grpc);
    let x: Vec<f32> = (0..8).map(|i| i as f32).collect();
    let (_, outputs) = predict(&grpc, of("half"), &[("x", floats(&x))], &[]).await.unwrap();
    let expected: Vec<f32> = x.iter().map(|x| x / 2.0 + 2.0).collect();
    assert_eq!(outputs[0].1.as_slice::<f32>().unwrap(), expected);
    // Three kinds of requests, which wait for others of their kind.
    let wait = |signature: &'static str, filter: &'static [&'static str]| {
        let grpc = grpc.clone();
        let spec = Spec { signature, ..of("half") };
        tokio::spawn(async move { predict(&grpc, spec, &[("x", floats(&[1.0]))], filter).await })
    };
    let waiting = [wait("", &[]), wait("total", &[])];
    let running = r#"ferroflow_serve_running_requests{model="half"} 2"#;
    until("two batches", async || {
        http(server.rest, "GET", "/metrics", "").await.2.contains(running)
    })
    .await;
    let five = [("x", floats(&[0.0; 5]))];
    let e = predict(&grpc, of("half"), &five, &[]).await.unwrap_err();
    assert_eq!(e.code, code::UNAVAILABLE);
    waiting.iter().for_each(|request| request.abort());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn warm_up_requests_run_before_a_version_serves() {
    let folder = Folder::new();
    let log = |name: &str, input: &str| {
        let mut predict_log = SegmentWriter::new();
        predict_log.bytes(1, request(of(name), &[(input, floats(&[1.0]))], &[]));
        let mut log = SegmentWriter::new();
        log.bytes(6, predict_log.finish().to_bytes());
        log.finish().to_bytes()
    };
    for (model, input) in [("good", "x"), ("bad", "z")] {
        let version = folder.join(&format!("{model}/1"));
        export_half_plus(2.0, &version);
        std::fs::create_dir_all(version.join("assets.extra")).unwrap();
        let mut file =
            RecordWriter::create(version.join("assets.extra/tf_serving_warmup_requests")).unwrap();
        file.write(&log(model, input)).unwrap();
        file.finish().unwrap();
    }
    let server = Running::start(vec![ModelSource::new("good", folder.join("good"))], quick()).await;
    let both = ["good", "bad"].map(|name| ModelSource::new(name, folder.join(name)));
    let e = server.models.set(both.to_vec()).await.unwrap_err();
    assert!(e.message().contains("warm-up request 0"), "{}", e.message());
    assert_eq!(
        (server.models.serves("good"), server.models.serves("bad")),
        (Some(true), Some(false))
    );
    let (status, _, _) = http(server.rest, "GET", "/healthz", "").await;
    assert_eq!(status, 503);
    let (_, states) = json(server.rest, "GET", "/v1/models/bad", "").await;
    let state = &states["model_version_status"][0];
    assert_eq!(state["state"], VersionState::End.name());
    assert_eq!(state["status"]["error_code"], "INVALID_ARGUMENT");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_may_only_use_its_own_files() {
    let folder = Folder::new();
    let server = half_plus_two(&folder).await;
    for (path, kind) in
        [("/", "text/html"), ("/ui/page.js", "text/javascript"), ("/ui/page.css", "text/css")]
    {
        let (status, head, body) = http(server.rest, "GET", path, "").await;
        assert_eq!(status, 200);
        assert!(head.contains(&format!("content-type: {kind}")), "{head}");
        assert!(head.contains("content-security-policy: default-src 'none'"), "{head}");
        assert!(!body.contains("http://") && !body.contains("https://"), "{path}");
        assert!(!body.contains("onclick=") && !body.contains("<style") && !body.contains("eval("));
    }
    let (status, models) = json(server.rest, "GET", "/ui/models", "").await;
    assert_eq!((status, models), (200, value!({"models": ["half"]})));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_model_does_not_hold_up_another() {
    let fifo = |path: std::path::PathBuf| {
        std::fs::remove_file(&path).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    };
    let folder = Folder::new();
    export_half_plus(2.0, &folder.join("half/1"));
    // Restoring its variables never ends.
    export_half_plus(2.0, &folder.join("stuck/1"));
    fifo(folder.join("stuck/1/variables/variables.index"));
    // The file of its graph is a FIFO.
    export_half_plus(2.0, &folder.join("pipe/1"));
    fifo(folder.join("pipe/1/saved_model.pb"));
    let loading = ModelsOptions { load_timeout: Duration::from_secs(5), ..quick() };
    let source = |name: &str| ModelSource::new(name, folder.join(name));
    let server = Running::start(vec![source("half")], loading).await;
    let models = server.models.clone();
    let all = ["half", "pipe", "stuck"].map(source);
    let setting = tokio::spawn(async move { models.set(all.into()).await });
    until("the stuck model", async || server.models.names().len() == 3).await;
    export_half_plus(3.0, &folder.join("half/2"));
    let grpc = channel(server.grpc);
    let half = async || predict(&grpc, of("half"), &[("x", floats(&[2.0]))], &[]).await;
    until("the new version", async || half().await.is_ok_and(|(version, _)| version == 2)).await;
    assert!(!setting.is_finished(), "the stuck model is still loading");
    let e = setting.await.unwrap().unwrap_err();
    assert!(e.message().contains("--load-timeout") || e.message().contains("regular file"), "{e}");
    server.stop().await;
}
