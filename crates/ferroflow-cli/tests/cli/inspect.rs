//! `ferroflow inspect` on files of each kind.

use ferroflow::prelude::*;
use std::path::{Path, PathBuf};
use std::process::Command;

fn inspect(arguments: &[&Path]) -> (String, String, bool) {
    let output = Command::new(env!("CARGO_BIN_EXE_ferroflow"))
        .arg("inspect")
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr), output.status.success())
}

fn temporary(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("ferroflow-inspect-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    dir
}

#[test]
fn checkpoints_show_their_tensors_and_differences() {
    let dir = temporary("checkpoints");
    let g = Graph::new();
    let w = g.variable("w", init::ones([2, 3]));
    let kept = g.variable("kept", 7);
    let saver = Saver::new(&g);
    let (init, add) = (g.global_initializer(), w.assign_add(init_of(&g)));
    let session = Session::local(&g).unwrap();
    session.run(&init).unwrap();
    let first = saver.save(&session, dir.join("model"), Some(1)).unwrap();
    session.run(&add).unwrap();
    let second = saver.save(&session, dir.join("model"), Some(2)).unwrap();
    assert_eq!(session.run(kept.scalar::<i32>()).unwrap(), 7);
    let (text, _, is_ok) = inspect(&[Path::new(&first)]);
    assert!(is_ok && text.contains("min 1  max 1"), "{text}");
    assert!(text.contains("2 tensors, 7 elements, 28 bytes"), "{text}");
    let (text, _, is_ok) = inspect(&[Path::new(&first), Path::new(&second)]);
    assert!(is_ok && text.contains("6 of 6 elements differ, by up to 0.500000"), "{text}");
    assert!(text.contains("1 tensors are the same"), "{text}");
    std::fs::remove_dir_all(&dir).unwrap();
}

fn init_of(g: &Graph) -> Output {
    g.fill(g.constant([2, 3]), g.constant(0.5))
}

#[test]
fn a_saved_model_shows_how_it_is_called() {
    let dir = temporary("saved-model");
    let g = Graph::new();
    let x = g.placeholder::<f32>("x", [None]);
    let y = &x * &g.variable("w", 2.0);
    let signature = Signature::predict().input("numbers", &x).output("doubled", &y);
    let builder = SavedModelBuilder::new(&g).signature("serving_default", signature);
    let init = g.global_initializer();
    let session = Session::local(&g).unwrap();
    session.run(&init).unwrap();
    builder.save(&session, &dir).unwrap();
    for path in [dir.clone(), dir.join("saved_model.pb")] {
        let (text, errors, is_ok) = inspect(&[&path]);
        assert!(is_ok && text.contains("graph for: serve"), "{text}{errors}");
        assert!(text.contains("serving_default (tensorflow/serving/predict)"), "{text}");
        for (name, shape) in [("numbers", "[?]"), ("doubled", "[?]")] {
            let line = text.lines().find(|l| l.contains(name)).unwrap();
            assert!(line.contains("float") && line.contains(shape), "{line}");
        }
    }
    let (text, _, _) = inspect(&[&dir, Path::new("--json")]);
    let json: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(json["signatures"]["serving_default"]["inputs"]["numbers"]["tensor"], "x:0");
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn files_of_unknown_formats_are_reported() {
    let dir = temporary("unknown");
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("graph.pbtxt");
    std::fs::write(&file, "node {}").unwrap();
    let (_, errors, is_ok) = inspect(&[&file]);
    assert!(!is_ok && errors.contains("written as text are not read"), "{errors}");
    let (_, errors, is_ok) = inspect(&[&dir.join("nothing")]);
    assert!(!is_ok && errors.contains("there is no such file"), "{errors}");
    std::fs::remove_dir_all(&dir).unwrap();
}
