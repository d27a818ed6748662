//! The message of `saved_model.pb`.

use super::{ASSET_COLLECTION, SaverNodes};
use crate::graph::Graph;
use crate::output::{Operation, Output};
use crate::saved_model::{Signature, TensorInfo};
use ferroflow_core::Result;
use ferroflow_graph::wire::tensor::shape_to_proto;
use ferroflow_proto::tensorflow as pb;
use pb::collection_def::{Kind, NodeList};
use pb::tensor_info::Encoding;
use prost::{Message, Name};
use std::collections::BTreeMap;

/// What a saved model says beside its graph.
pub(crate) struct ModelParts<'a> {
    pub saver: Option<SaverNodes>,
    pub tags: &'a [String],
    pub signatures: &'a BTreeMap<String, Signature>,
    /// Tensors that hold the names of files, and the files' names in `assets/`.
    pub assets: &'a [(Output, String)],
    /// Run when the model was loaded.
    pub main: Option<&'a Operation>,
}

/// The key under which a signature names the op to run after the model was loaded.
const INIT_OP: &str = "__saved_model_init_op";
/// The collection older loaders look into for the same.
const MAIN_OP: &str = "saved_model_main_op";

/// A graph without devices, and everything that is known of it, as a serialized `SavedModel`.
pub(crate) fn encode_saved_model(graph: &Graph, parts: &ModelParts<'_>) -> Result<Vec<u8>> {
    let mut def = graph.to_def()?;
    // The program that loads the model has other devices.
    def.nodes.iter_mut().for_each(|n| n.device.clear());
    let mut meta = graph.meta_graph_proto(&def, parts.saver.as_ref())?;
    if let Some(info) = &mut meta.meta_info_def {
        info.tags = parts.tags.to_vec();
    }
    for (key, signature) in parts.signatures {
        let infos = |tensors: &BTreeMap<String, TensorInfo>| {
            tensors.iter().map(|(key, t)| (key.clone(), tensor_info(t))).collect()
        };
        let signature = pb::SignatureDef {
            inputs: infos(&signature.inputs),
            outputs: infos(&signature.outputs),
            method_name: signature.method.clone(),
            ..Default::default()
        };
        meta.signature_def.insert(key.clone(), signature);
    }
    if let Some(main) = parts.main {
        let nodes = Kind::NodeList(NodeList { value: vec![main.name()] });
        meta.collection_def.insert(MAIN_OP.into(), pb::CollectionDef { kind: Some(nodes) });
        let info =
            pb::TensorInfo { encoding: Some(Encoding::Name(main.name())), ..Default::default() };
        let outputs = BTreeMap::from([(INIT_OP.to_string(), info)]);
        let signature = pb::SignatureDef { outputs, ..Default::default() };
        meta.signature_def.insert(INIT_OP.into(), signature);
    }
    for (tensor, filename) in parts.assets {
        let asset = pb::AssetFileDef {
            tensor_info: Some(pb::TensorInfo {
                encoding: Some(Encoding::Name(tensor.name())),
                ..Default::default()
            }),
            filename: filename.clone(),
        };
        meta.asset_file_def.push(asset);
    }
    if !parts.assets.is_empty() {
        let value = meta.asset_file_def.iter().map(any).collect();
        let kind = Kind::AnyList(pb::collection_def::AnyList { value });
        meta.collection_def.insert(ASSET_COLLECTION.into(), pb::CollectionDef { kind: Some(kind) });
    }
    let model = pb::SavedModel { saved_model_schema_version: 1, meta_graphs: vec![meta] };
    Ok(model.encode_to_vec())
}

fn any<M: Message + Name>(message: &M) -> ferroflow_proto::google::protobuf::Any {
    let value = message.encode_to_vec().into();
    ferroflow_proto::google::protobuf::Any { type_url: M::type_url(), value }
}

fn tensor_info(tensor: &TensorInfo) -> pb::TensorInfo {
    pb::TensorInfo {
        dtype: tensor.dtype.number(),
        tensor_shape: Some(shape_to_proto(&tensor.shape)),
        encoding: Some(Encoding::Name(tensor.name.clone())),
    }
}
