//! Files that block. They stall the steps that read them and nothing else.

use super::fixture::*;
use ferroflow_core::DType;
use ferroflow_graph::wire::step::RunStepRequest;
use ferroflow_proto::tensorflow as pb;
use pb::attr_value::{ListValue, Value};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A FIFO. A reader blocks until [`Fifo::write`].
struct Fifo(PathBuf);

impl Fifo {
    fn new(name: &str) -> Fifo {
        let name = format!("ferroflow-fifo-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_file(&path);
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        Fifo(path)
    }

    fn write(&self, text: &str) {
        let mut fifo = std::fs::OpenOptions::new().write(true).open(&self.0).unwrap();
        fifo.write_all(text.as_bytes()).unwrap();
    }
}

impl Drop for Fifo {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn text(name: &str, value: &str) -> pb::NodeDef {
    let string_val = vec![value.to_string().into()];
    constant(name, pb::TensorProto { string_val, ..tensor(DType::String, &[]) })
}

fn path_text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A graph whose node `x` reads the file.
type Reader = fn(&Path) -> Vec<pb::NodeDef>;

fn whole_file(path: &Path) -> Vec<pb::NodeDef> {
    vec![text("name", path_text(path)), node("x", "ReadFile", &["name"])]
}

fn lines(path: &Path) -> Vec<pb::NodeDef> {
    let shapes = ListValue { shape: vec![shape(&[])], ..ListValue::default() };
    vec![
        text("name", path_text(path)),
        text("compression", ""),
        constant("size", pb::TensorProto { int64_val: vec![0], ..tensor(DType::Int64, &[]) }),
        node("lines", "TextLineDataset", &["name", "compression", "size"]),
        node("x", "DatasetToSingleElement", &["lines"])
            .attr("output_types", vec![DType::String])
            .attr("output_shapes", Value::List(Box::new(shapes))),
    ]
}

fn sampler(path: &Path) -> Vec<pb::NodeDef> {
    let classes = pb::TensorProto { int64_val: vec![0], ..tensor(DType::Int64, &[1, 1]) };
    vec![
        constant("classes", classes),
        node("x", "FixedUnigramCandidateSampler", &["classes"])
            .attr("num_true", 1i64)
            .attr("num_sampled", 1i64)
            .attr("unique", true)
            .attr("range_max", 1i64)
            .attr("vocab_file", path_text(path)),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn steps_that_read_a_fifo_stall_and_others_do_not() {
    let f = Arc::new(Fixture::start().await);
    let readers: [(&str, Reader, &str); 3] = [
        ("file", whole_file, "contents"),
        ("lines", lines, "one line\n"),
        ("sampler", sampler, "word,1\n"),
    ];
    for (name, reader, contents) in readers {
        // More of them than the server has compute and network threads.
        let fifos: Vec<Fifo> = (0..12).map(|i| Fifo::new(&format!("{name}{i}"))).collect();
        let mut steps = Vec::new();
        for fifo in &fifos {
            let (f, graph) = (f.clone(), graph(reader(&fifo.0)));
            let session_handle = f.create(graph).await.unwrap();
            steps.push(tokio::spawn(async move {
                let fetches = vec!["x:0".to_string()];
                let request = RunStepRequest { session_handle, fetches, ..Default::default() };
                f.step(request, HANG).await
            }));
        }
        for _ in 0..20 {
            f.works().await;
        }
        for (fifo, step) in fifos.iter().zip(steps) {
            assert!(!step.is_finished(), "{name}: nothing was written yet");
            tokio::task::block_in_place(|| fifo.write(contents));
            let result = step.await.unwrap();
            assert!(result.is_ok(), "{name}: {result:?}");
        }
        f.works().await;
    }
}
