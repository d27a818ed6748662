//! Events, MetaGraphs and SavedModels as TensorFlow's protobuf messages. Only this module of the
//! crate uses protobuf types.

mod saved_model;

pub(crate) use saved_model::{ModelParts, encode_saved_model};

use crate::graph::{CollectionItem, Graph};
use crate::saved_model::{Signature, TensorInfo};
use ferroflow_core::{DType, PartialShape, Result, err};
use ferroflow_graph::GraphDef;
use ferroflow_graph::wire::graph::{encode_graph, graph_from_proto, graph_to_proto};
use ferroflow_graph::wire::tensor;
use ferroflow_proto::tensorflow as pb;
use pb::collection_def::{BytesList, Kind, NodeList};
use pb::event::What;
use prost::Message;
use std::collections::BTreeMap;

/// A record of an event file.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Seconds since the Unix epoch.
    pub wall_time: f64,
    /// The global step.
    pub step: i64,
    /// The content.
    pub what: EventKind,
}

/// The content of an event.
#[derive(Clone, Debug, PartialEq)]
pub enum EventKind {
    /// The first record of a file.
    Version(String),
    /// A serialized GraphDef.
    Graph(Vec<u8>),
    /// Values by tag.
    Summary(Vec<SummaryValue>),
    /// Training started, stopped, or saved a checkpoint.
    Session(String),
    /// Anything else.
    Other,
}

/// One value of a summary.
#[derive(Clone, Debug, PartialEq)]
pub struct SummaryValue {
    /// The tag.
    pub tag: String,
    /// The number, for scalars.
    pub scalar: Option<f32>,
    /// The kind of value, if it is no scalar.
    pub kind: &'static str,
}

pub(crate) enum EventBody<'a> {
    Version,
    Graph(Vec<u8>),
    /// A serialized `Summary`.
    Summary(&'a [u8]),
    Scalar(&'a str, f32),
    Started,
    Checkpoint(&'a str),
    /// A tag and a serialized `RunMetadata`.
    Trace(&'a str, bytes::Bytes),
    /// A tag and a text, in TensorBoard's Markdown.
    Text(&'a str, &'a str),
}

/// The metadata by which TensorBoard recognizes a text.
fn text_metadata() -> pb::SummaryMetadata {
    let plugin_name = "text".into();
    let plugin = pb::summary_metadata::PluginData { plugin_name, ..Default::default() };
    pb::SummaryMetadata { plugin_data: Some(plugin), ..Default::default() }
}

/// [`text_metadata`], serialized.
pub(crate) fn text_metadata_bytes() -> Vec<u8> {
    text_metadata().encode_to_vec()
}

/// Serializes an event.
pub(crate) fn encode_event(wall_time: f64, step: i64, body: EventBody<'_>) -> Result<Vec<u8>> {
    use pb::session_log::SessionStatus;
    let log = |status: SessionStatus, path: &str| {
        What::SessionLog(pb::SessionLog {
            status: status as i32,
            checkpoint_path: path.to_string(),
            msg: String::new(),
        })
    };
    let what = match body {
        EventBody::Version => What::FileVersion("brain.Event:2".into()),
        EventBody::Graph(bytes) => What::GraphDef(bytes.into()),
        EventBody::Summary(bytes) => What::Summary(
            pb::Summary::decode(bytes).map_err(|e| err!(DataLoss, "not a summary: {e}"))?,
        ),
        EventBody::Scalar(tag, value) => What::Summary(pb::Summary {
            value: vec![pb::summary::Value {
                tag: tag.to_string(),
                value: Some(pb::summary::value::Value::SimpleValue(value)),
                ..Default::default()
            }],
        }),
        EventBody::Started => log(SessionStatus::Start, ""),
        EventBody::Checkpoint(path) => log(SessionStatus::Checkpoint, path),
        EventBody::Trace(tag, run_metadata) => {
            What::TaggedRunMetadata(pb::TaggedRunMetadata { tag: tag.to_string(), run_metadata })
        }
        EventBody::Text(tag, text) => What::Summary(pb::Summary {
            value: vec![pb::summary::Value {
                tag: tag.to_string(),
                metadata: Some(text_metadata()),
                value: Some(pb::summary::value::Value::Tensor(Box::new(pb::TensorProto {
                    dtype: DType::String.number(),
                    tensor_shape: Some(Default::default()),
                    string_val: vec![bytes::Bytes::copy_from_slice(text.as_bytes())],
                    ..Default::default()
                }))),
                ..Default::default()
            }],
        }),
    };
    Ok(pb::Event { wall_time, step, what: Some(what), ..Default::default() }.encode_to_vec())
}

/// Reads an event.
pub(crate) fn decode_event(bytes: &[u8]) -> Result<Event> {
    use pb::summary::value::Value;
    let event = pb::Event::decode(bytes).map_err(|e| err!(DataLoss, "not an event: {e}"))?;
    let value = |v: pb::summary::Value| {
        let (scalar, kind) = match &v.value {
            Some(Value::SimpleValue(x)) => (Some(*x), "scalar"),
            Some(Value::Image(_)) => (None, "image"),
            Some(Value::Histo(_)) => (None, "histogram"),
            Some(Value::Audio(_)) => (None, "audio"),
            Some(Value::Tensor(_)) => (None, "tensor"),
            _ => (None, "value"),
        };
        SummaryValue { tag: v.tag, scalar, kind }
    };
    let what = match event.what {
        Some(What::FileVersion(v)) => EventKind::Version(v),
        Some(What::GraphDef(bytes)) => EventKind::Graph(bytes.to_vec()),
        Some(What::Summary(s)) => EventKind::Summary(s.value.into_iter().map(value).collect()),
        Some(What::SessionLog(log)) => EventKind::Session(match log.status() {
            pb::session_log::SessionStatus::Start => "started".into(),
            pb::session_log::SessionStatus::Stop => "stopped".into(),
            pb::session_log::SessionStatus::Checkpoint => {
                format!("checkpoint {}", log.checkpoint_path)
            }
            _ => log.msg,
        }),
        _ => EventKind::Other,
    };
    Ok(Event { wall_time: event.wall_time, step: event.step, what })
}

/// The values of a feature of an `Example`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ExampleValues {
    Floats(Vec<f32>),
    Ints(Vec<i64>),
    Bytes(Vec<bytes::Bytes>),
}

/// Serializes an `Example`.
pub(crate) fn encode_example(features: &BTreeMap<String, ExampleValues>) -> Vec<u8> {
    use pb::feature::Kind;
    let feature = |values: &ExampleValues| {
        let kind = match values {
            ExampleValues::Floats(v) => Kind::FloatList(pb::FloatList { value: v.clone() }),
            ExampleValues::Ints(v) => Kind::Int64List(pb::Int64List { value: v.clone() }),
            ExampleValues::Bytes(v) => Kind::BytesList(pb::BytesList { value: v.clone() }),
        };
        pb::Feature { kind: Some(kind) }
    };
    let feature = features.iter().map(|(key, v)| (key.clone(), feature(v))).collect();
    pb::Example { features: Some(pb::Features { feature }) }.encode_to_vec()
}

/// The nodes that save and restore a graph's variables.
#[derive(Clone, Debug)]
pub(crate) struct SaverNodes {
    pub filename: String,
    pub save: String,
    pub restore: String,
    pub max_to_keep: i32,
    /// Whether every parameter server writes its own files.
    pub is_sharded: bool,
}

impl Graph {
    /// The graph as a serialized `MetaGraphDef`. Its collections list the variables, so that
    /// TensorFlow's `import_meta_graph` can continue training.
    pub fn to_meta_graph(&self) -> Result<Vec<u8>> {
        self.meta_graph(None)
    }

    pub(crate) fn meta_graph(&self, saver: Option<&SaverNodes>) -> Result<Vec<u8>> {
        Ok(self.meta_graph_proto(&self.to_def()?, saver)?.encode_to_vec())
    }

    /// The message for this graph, whose GraphDef is `def`.
    fn meta_graph_proto(
        &self,
        def: &GraphDef,
        saver: Option<&SaverNodes>,
    ) -> Result<pb::MetaGraphDef> {
        let mut used: Vec<&str> = def.nodes.iter().map(|n| n.op.as_str()).collect();
        used.extend(def.functions.iter().flat_map(|f| f.nodes.iter().map(|n| n.op.as_str())));
        used.sort_unstable();
        used.dedup();
        let ops = used.iter().filter_map(|name| self.catalog().get(name));
        let ops = ops
            .map(|op| ferroflow_graph::wire::graph::op_to_proto(op))
            .collect::<Result<Vec<_>>>()?;
        let info = pb::meta_graph_def::MetaInfoDef {
            stripped_op_list: Some(pb::OpList { op: ops }),
            tensorflow_version: "2.15.1".into(),
            ..Default::default()
        };
        Ok(pb::MetaGraphDef {
            meta_info_def: Some(info),
            graph_def: Some(graph_to_proto(def)?),
            saver_def: saver.map(|s| pb::SaverDef {
                filename_tensor_name: s.filename.clone(),
                save_tensor_name: s.save.clone(),
                restore_op_name: s.restore.clone(),
                max_to_keep: s.max_to_keep,
                sharded: s.is_sharded,
                keep_checkpoint_every_n_hours: 10_000.0,
                version: pb::saver_def::CheckpointFormatVersion::V2 as i32,
            }),
            collection_def: self.collections_to_proto(),
            ..Default::default()
        })
    }

    fn collections_to_proto(&self) -> BTreeMap<String, pb::CollectionDef> {
        let state = self.state();
        let tensor =
            |e: ferroflow_graph::Endpoint| format!("{}:{}", state.ir.node(e.node).name, e.slot);
        let mut all = BTreeMap::new();
        for (name, items) in &state.collections {
            let (mut nodes, mut variables) = (Vec::new(), Vec::new());
            for item in items {
                match item {
                    CollectionItem::Output(e) => nodes.push(tensor(*e)),
                    CollectionItem::Operation(id) => nodes.push(state.ir.node(*id).name.clone()),
                    CollectionItem::Variable(index) => {
                        let v = &state.variables[*index];
                        let slice = v.slice.as_ref().map(|s| pb::SaveSliceInfoDef {
                            full_name: s.full_name.clone(),
                            full_shape: s.full_shape.to_i64s(),
                            var_offset: s.offset.iter().map(|&o| o as i64).collect(),
                            var_shape: s.shape.to_i64s(),
                        });
                        let def = pb::VariableDef {
                            variable_name: tensor(v.handle),
                            initializer_name: state.ir.node(v.initializer).name.clone(),
                            snapshot_name: tensor(v.snapshot),
                            save_slice_info_def: slice,
                            is_resource: true,
                            initial_value_name: tensor(v.initial_value),
                            trainable: v.is_trainable,
                            ..Default::default()
                        };
                        variables.push(def.encode_to_vec().into());
                    }
                }
            }
            let kind = match variables.is_empty() {
                true => Kind::NodeList(NodeList { value: nodes }),
                false => Kind::BytesList(BytesList { value: variables }),
            };
            all.insert(name.clone(), pb::CollectionDef { kind: Some(kind) });
        }
        all
    }

    /// The graph as a serialized `GraphDef`.
    pub fn to_graph_def_bytes(&self) -> Result<Vec<u8>> {
        Ok(encode_graph(&self.to_def()?)?.to_vec())
    }
}

/// A graph of a SavedModel, with its signatures, saver, initializer and assets.
pub(crate) struct MetaGraph {
    pub tags: Vec<String>,
    pub graph: ferroflow_graph::GraphDef,
    pub saver: Option<SavedWith>,
    pub signatures: BTreeMap<String, Signature>,
    /// Signatures with sparse or composite tensors.
    pub composite: Vec<String>,
    /// The op that initializes the model after its variables are restored.
    pub init: Option<String>,
    /// Tensors that hold file names, and the names of the files in `assets/`.
    pub assets: Vec<(String, String)>,
}

/// The nodes that restore a graph's variables.
pub(crate) struct SavedWith {
    pub filename: String,
    pub restore: String,
}

/// The names of the initialization op: as a collection, and as a signature.
const INIT_COLLECTIONS: [&str; 2] = ["saved_model_main_op", "legacy_init_op"];
const INIT_SIGNATURE: &str = "__saved_model_init_op";
/// The collection of asset files, in addition to the message's field.
const ASSET_COLLECTION: &str = "saved_model_assets";

/// The graphs of a serialized `SavedModel`.
pub(crate) fn meta_graphs(bytes: &[u8]) -> Result<Vec<MetaGraph>> {
    let model =
        pb::SavedModel::decode(bytes).map_err(|e| err!(DataLoss, "not a SavedModel: {e}"))?;
    model.meta_graphs.into_iter().map(meta_graph).collect()
}

fn meta_graph(meta: pb::MetaGraphDef) -> Result<MetaGraph> {
    let graph = meta.graph_def.ok_or_else(|| err!(DataLoss, "a graph of the model is missing"))?;
    let (mut signatures, mut composite, mut init) = (BTreeMap::new(), Vec::new(), None);
    for (name, def) in meta.signature_def {
        let infos = |list: BTreeMap<String, pb::TensorInfo>| -> Result<Option<_>> {
            let infos =
                list.into_iter().map(|(key, info)| Ok(plain(info)?.map(|info| (key, info))));
            infos.collect::<Result<Option<BTreeMap<String, TensorInfo>>>>()
        };
        let defaults = def.defaults.into_iter();
        let defaults = defaults.map(|(key, value)| Ok((key, tensor::from_proto(value)?)));
        let defaults = defaults.collect::<Result<_>>()?;
        let (Some(inputs), Some(outputs)) = (infos(def.inputs)?, infos(def.outputs)?) else {
            composite.push(name);
            continue;
        };
        if name == INIT_SIGNATURE {
            init = outputs.into_values().next().map(|info| info.name);
            continue;
        }
        let method = def.method_name;
        signatures.insert(name, Signature { inputs, outputs, method, defaults });
    }
    for name in INIT_COLLECTIONS {
        if let Some(Kind::NodeList(list)) =
            meta.collection_def.get(name).and_then(|c| c.kind.as_ref())
            && init.is_none()
        {
            init = list.value.first().cloned();
        }
    }
    let files = match meta.asset_file_def.is_empty() {
        false => meta.asset_file_def,
        true => collected_assets(&meta.collection_def)?,
    };
    let asset = |file: pb::AssetFileDef| -> Result<(String, String)> {
        let info = file.tensor_info.map(plain).transpose()?.flatten();
        let info = info.ok_or_else(|| err!(DataLoss, "no tensor names {:?}", file.filename))?;
        Ok((info.name, file.filename))
    };
    // A tensor can be in the collection twice.
    let assets = files.into_iter().map(asset).collect::<Result<BTreeMap<_, _>>>()?;
    let saver = meta.saver_def.filter(|s| !s.restore_op_name.is_empty());
    Ok(MetaGraph {
        tags: meta.meta_info_def.map(|info| info.tags).unwrap_or_default(),
        graph: graph_from_proto(graph)?,
        saver: saver
            .map(|s| SavedWith { filename: s.filename_tensor_name, restore: s.restore_op_name }),
        signatures,
        composite,
        init: init.filter(|name| !name.is_empty()),
        assets: assets.into_iter().collect(),
    })
}

/// The asset files of a model that a session saved, from the collection.
fn collected_assets(
    collections: &BTreeMap<String, pb::CollectionDef>,
) -> Result<Vec<pb::AssetFileDef>> {
    let Some(Kind::AnyList(files)) =
        collections.get(ASSET_COLLECTION).and_then(|c| c.kind.as_ref())
    else {
        return Ok(Vec::new());
    };
    let decode = |any: &ferroflow_proto::google::protobuf::Any| {
        pb::AssetFileDef::decode(any.value.as_ref())
            .map_err(|e| err!(DataLoss, "{ASSET_COLLECTION}: not the name of a file: {e}"))
    };
    files.value.iter().map(decode).collect()
}

/// A tensor by name; `None` for a composite tensor.
fn plain(info: pb::TensorInfo) -> Result<Option<TensorInfo>> {
    let Some(pb::tensor_info::Encoding::Name(name)) = info.encoding else { return Ok(None) };
    // An entry for an op instead of a tensor has no type.
    let dtype = DType::from_number(info.dtype).unwrap_or(DType::Float);
    let shape = info.tensor_shape.as_ref().map(tensor::shape_from_proto).transpose()?;
    Ok(Some(TensorInfo { name, dtype, shape: shape.unwrap_or_else(PartialShape::unknown) }))
}

/// Reads the graph of a serialized `MetaGraphDef`, or the first of a `SavedModel`.
pub fn graph_of_meta_graph(bytes: &[u8]) -> Result<GraphDef> {
    let from = |meta: pb::MetaGraphDef| {
        let graph = meta.graph_def.ok_or_else(|| err!(DataLoss, "it has no graph"))?;
        graph_from_proto(graph)
    };
    if let Ok(model) = pb::SavedModel::decode(bytes)
        && let Some(meta) = model.meta_graphs.into_iter().next()
        && meta.graph_def.is_some()
    {
        return from(meta);
    }
    from(pb::MetaGraphDef::decode(bytes).map_err(|e| err!(DataLoss, "not a MetaGraphDef: {e}"))?)
}
