//! Record files: cases with TensorFlow's answers.
//!
//! A record has four parts. Each follows its length (four bytes, little-endian): the description of
//! the case (JSON), the graph, the values fed, and TensorFlow's values. The last three are
//! GraphDefs, in which values are Const nodes. A file may be gzipped.

use bytes::Bytes;
use ferroflow::Tensor;
use ferroflow::graph::{AttrValue, GraphDef, decode_graph};
use ferroflow_core::{Code, Result, bail, err};
use flate2::read::GzDecoder;
use serde_json::Value as Json;
use std::io::{BufReader, Read};
use std::path::Path;

/// A longer part means that the file is damaged.
const LONGEST: usize = 1 << 28;

/// How results are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparisonMode {
    /// Each element, within the tolerance of its dtype.
    Value,
    /// Like `Value`, relative to the largest element, for sums in which terms cancel.
    Norm,
    /// All bits.
    Exact,
    /// Only dtype and shape, because the values are random or unspecified.
    Shape,
}

/// One call of one op, with TensorFlow's answer.
pub struct RecordedCase {
    pub op: String,
    pub dtype: String,
    /// The values of all type attributes, for messages.
    pub types: String,
    pub index: u64,
    /// Whether the call is invalid on purpose.
    pub spoiled: bool,
    pub mode: ComparisonMode,
    pub tolerance: f64,
    pub graph: GraphDef,
    pub feeds: Vec<(String, Tensor)>,
    pub fetches: Vec<String>,
    pub targets: Vec<String>,
    pub theirs: RecordedAnswer,
    /// The bytes of the record, for writing it again.
    pub raw: Bytes,
}

/// TensorFlow's answer.
pub enum RecordedAnswer {
    Values(Vec<Tensor>),
    Error(Code, String),
    /// The process crashed.
    Crashed,
}

/// Reads the cases of a file one by one.
pub struct Records {
    input: Box<dyn Read>,
}

impl Records {
    /// Opens a record file, gzipped if its name ends in `.gz`.
    pub fn open(path: &Path) -> Result<Records> {
        let file = std::fs::File::open(path)
            .map_err(|e| err!(NotFound, "cannot open {}: {e}", path.display()))?;
        let file = BufReader::with_capacity(1 << 20, file);
        let zipped = path.extension().is_some_and(|e| e == "gz");
        let input: Box<dyn Read> =
            if zipped { Box::new(GzDecoder::new(file)) } else { Box::new(file) };
        Ok(Records { input })
    }

    fn part(&mut self, raw: &mut Vec<u8>) -> Result<Option<Bytes>> {
        let mut head = [0; 4];
        let mut got = 0;
        while got < 4 {
            match self.input.read(&mut head[got..]) {
                Ok(0) if got == 0 => return Ok(None),
                Ok(0) => bail!(DataLoss, "the file ends within a record"),
                Ok(n) => got += n,
                Err(e) => bail!(DataLoss, "{e}"),
            }
        }
        let len = u32::from_le_bytes(head) as usize;
        if len > LONGEST {
            bail!(DataLoss, "a part has {len} bytes, the file is damaged");
        }
        let mut part = vec![0; len];
        self.input.read_exact(&mut part).map_err(|e| err!(DataLoss, "{e}"))?;
        raw.extend_from_slice(&head);
        raw.extend_from_slice(&part);
        Ok(Some(part.into()))
    }

    fn read(&mut self) -> Result<Option<RecordedCase>> {
        loop {
            let mut raw = Vec::new();
            let Some(meta) = self.part(&mut raw)? else { return Ok(None) };
            let mut parts = [Bytes::new(), Bytes::new(), Bytes::new()];
            for part in &mut parts {
                *part = self
                    .part(&mut raw)?
                    .ok_or_else(|| err!(DataLoss, "the file ends within a record"))?;
            }
            let meta: Json = serde_json::from_slice(&meta)
                .map_err(|e| err!(DataLoss, "invalid description of a case: {e}"))?;
            // The question is written before the answer, so that a missing answer is detected.
            if meta["state"] != "asked" {
                let [graph, feeds, answers] = parts;
                return case(&meta, graph, feeds, answers, raw.into()).map(Some);
            }
        }
    }
}

impl Iterator for Records {
    type Item = Result<RecordedCase>;

    fn next(&mut self) -> Option<Result<RecordedCase>> {
        self.read().transpose()
    }
}

fn case(
    meta: &Json,
    graph: Bytes,
    feeds: Bytes,
    answers: Bytes,
    raw: Bytes,
) -> Result<RecordedCase> {
    let text = |key: &str| meta[key].as_str().unwrap_or_default().to_string();
    let texts = |key: &str| -> Vec<String> {
        let list = meta[key].as_array().into_iter().flatten();
        list.filter_map(|v| v.as_str().map(str::to_string)).collect()
    };
    let theirs = match meta["state"].as_str() {
        Some("ok") => {
            RecordedAnswer::Values(constants(answers)?.into_iter().map(|(_, t)| t).collect())
        }
        Some("error") => {
            let code = meta["code"].as_i64().and_then(|c| i32::try_from(c).ok()).unwrap_or(2);
            RecordedAnswer::Error(Code::from_number(code), text("message"))
        }
        Some("crashed") => RecordedAnswer::Crashed,
        other => bail!(DataLoss, "a case has the unknown state {other:?}"),
    };
    let mode = match meta["mode"].as_str() {
        Some("norm") => ComparisonMode::Norm,
        Some("exact") => ComparisonMode::Exact,
        Some("shape") => ComparisonMode::Shape,
        _ => ComparisonMode::Value,
    };
    Ok(RecordedCase {
        op: text("op"),
        dtype: text("dtype"),
        types: meta["types"].to_string(),
        index: meta["index"].as_u64().unwrap_or_default(),
        spoiled: meta["spoiled"] == true,
        mode,
        tolerance: meta["tolerance"].as_f64().unwrap_or(1.0),
        graph: decode_graph(graph)?,
        feeds: constants(feeds)?,
        fetches: texts("fetches"),
        targets: texts("targets"),
        theirs,
        raw,
    })
}

fn constants(graph: Bytes) -> Result<Vec<(String, Tensor)>> {
    let nodes = decode_graph(graph)?.nodes;
    let value = |mut node: ferroflow::graph::NodeDef| match node.attrs.remove("value") {
        Some(AttrValue::Tensor(t)) => Ok((node.name, t)),
        _ => Err(err!(DataLoss, "{} has no value", node.name)),
    };
    nodes.into_iter().map(value).collect()
}
