//! SavedModels that TensorFlow 2.15.1 wrote; tests/data/saved_model/make.py makes them.

use ferroflow::checkpoint::SavedModel;
use ferroflow::graph::GraphDefSession;
use ferroflow::{Code, Tensor};
use std::path::PathBuf;

fn dir(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/saved_model").join(name)
}

fn words(list: &[&str]) -> Tensor {
    Tensor::from_strings([list.len()], list.iter().map(|s| s.to_string().into()).collect()).unwrap()
}

#[test]
fn models_of_sessions_and_of_functions_give_the_same_results() {
    for name in ["session", "function"] {
        let model = SavedModel::load(dir(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        let x = Tensor::from_slice([1, 2], &[1.0f32, 10.0]).unwrap();
        let inputs = [("x", x), ("word", words(&["two", "none", "zero"]))];
        let out = model.call("serving_default", &inputs).unwrap_or_else(|e| panic!("{name}: {e}"));
        // The variables come from the checkpoint, the words from the asset.
        assert_eq!(out["y"].as_slice::<f32>().unwrap(), [41.5, 52.5, 63.5], "{name}");
        assert_eq!(out["number"].as_slice::<i64>().unwrap(), [2, -1, 0], "{name}");
        assert_eq!(out.len(), 2);
    }
}

#[test]
fn a_model_keeps_its_state_between_calls() {
    let model = SavedModel::load(dir("function")).unwrap();
    for expected in [1.5f32, 2.5] {
        let out = model.call("grow", &[("by", Tensor::scalar(1.0f32))]).unwrap();
        assert_eq!(out["b"].scalar_value::<f32>().unwrap(), expected);
    }
}

#[test]
fn signatures_list_their_inputs() {
    let model = SavedModel::load(dir("session")).unwrap();
    let names: Vec<&String> = model.signatures().keys().collect();
    assert_eq!(names, ["serving_default"]);
    let x = &model.signatures()["serving_default"].inputs["x"];
    assert_eq!((x.name.as_str(), x.shape.to_string().as_str()), ("x:0", "[?,2]"));
    assert_eq!(model.signatures()["serving_default"].method, "tensorflow/serving/predict");
}

#[test]
fn invalid_calls_are_errors() {
    let model = SavedModel::load(dir("session")).unwrap();
    let x = || Tensor::from_slice([1, 2], &[1.0f32, 10.0]).unwrap();
    for (signature, inputs, code, text) in [
        ("other", vec![], Code::NotFound, "serving_default"),
        ("serving_default", vec![("x", x())], Code::InvalidArgument, "\"word\""),
        ("serving_default", vec![("z", x())], Code::InvalidArgument, "\"z\""),
        (
            "serving_default",
            vec![("x", Tensor::scalar(1.0f32)), ("word", words(&[]))],
            Code::InvalidArgument,
            "[?,2]",
        ),
    ] {
        let e = model.call(signature, &inputs).unwrap_err();
        assert_eq!(e.code(), code, "{e}");
        assert!(e.message().contains(text), "{e}");
    }
}

#[test]
fn a_model_is_found_by_its_tags() {
    let load =
        |name: &str, tags: &[&str]| SavedModel::load_with(dir(name), tags, GraphDefSession::local);
    let e = load("session", &["train"]).err().unwrap();
    assert_eq!(e.code(), Code::NotFound);
    assert!(e.message().contains("serve"), "{e}");
    let e = load("nowhere", &["serve"]).err().unwrap();
    assert_eq!(e.code(), Code::NotFound);
}
