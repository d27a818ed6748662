//! A server of one task, a client that sends any bytes, and handmade graphs.

use bytes::Bytes;
use ferroflow_cluster::rpc::{CallOptions, Channel, Chunks, client};
use ferroflow_cluster::{ClusterSpec, Server, ServerOptions};
use ferroflow_core::{Code, DType, Error, Tensor};
use ferroflow_graph::Catalog;
use ferroflow_graph::wire::MessageReader;
use ferroflow_graph::wire::step::{RunStepRequest, RunStepResponse};
use ferroflow_proto::tensorflow as pb;
use pb::attr_value::Value;
use prost::Message;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::sync::oneshot;

/// A timeout that only a hang reaches.
pub const HANG: Duration = Duration::from_secs(60);

pub type Result<T> = std::result::Result<T, Error>;

/// A server that runs until it is dropped.
pub struct Fixture {
    pub channel: Channel,
    _stop: oneshot::Sender<()>,
}

static CATALOG: LazyLock<Arc<Catalog>> = LazyLock::new(|| {
    let mut catalog = Catalog::new();
    ferroflow_ops::register(&mut catalog);
    catalog.add_signatures(ferroflow_graph::tensorflow_ops::tensorflow_signatures());
    Arc::new(catalog)
});

impl Fixture {
    pub async fn start() -> Fixture {
        let options = ServerOptions::new(
            ClusterSpec::parse("local=127.0.0.1:0").expect("a spec"),
            "local",
            0,
        );
        let server = Server::bind(options, CATALOG.clone()).await.expect("a port");
        let address = server.target().strip_prefix("grpc://").expect("a target").to_string();
        let channel =
            Channel::connect(&address, client::ChannelOptions::default()).expect("an address");
        let (stop, stopped) = oneshot::channel::<()>();
        tokio::spawn(server.serve(async {
            let _ = stopped.await;
        }));
        Fixture { channel, _stop: stop }
    }

    pub async fn call(&self, method: &str, message: impl Into<Chunks>) -> Result<Bytes> {
        self.call_within(method, message, HANG).await
    }

    pub async fn call_within(
        &self,
        method: &str,
        message: impl Into<Chunks>,
        timeout: Duration,
    ) -> Result<Bytes> {
        let path = format!("/tensorflow.{method}");
        let answer = self.channel.call(&path, message, CallOptions::timeout(timeout)).await;
        let chunks = answer.map_err(|s| Error::new(Code::from_number(s.code), s.message))?;
        Ok(chunks.segments().flat_map(|s| s.to_vec()).collect::<Vec<u8>>().into())
    }

    pub async fn create(&self, graph: pb::GraphDef) -> Result<String> {
        let request = pb::CreateSessionRequest {
            graph_def: Some(graph),
            ..pb::CreateSessionRequest::default()
        };
        let answer = self.call("MasterService/CreateSession", encode(&request)).await?;
        Ok(pb::CreateSessionResponse::decode(answer).expect("an answer").session_handle)
    }

    pub async fn close(&self, session_handle: &str) -> Result<()> {
        let request = pb::CloseSessionRequest { session_handle: session_handle.into() };
        self.call("MasterService/CloseSession", encode(&request)).await.map(|_| ())
    }

    pub async fn step(&self, request: RunStepRequest, timeout: Duration) -> Result<Vec<Tensor>> {
        let request = RunStepRequest {
            store_errors_in_response_body: true,
            request_id: fastrand::i64(1..),
            ..request
        };
        let message: Vec<Bytes> = request.encode()?.into_parts();
        let answer = self.call_within("MasterService/RunStep", message, timeout).await?;
        let response = RunStepResponse::decode(MessageReader::from(answer))?;
        match response.status {
            Some(error) => Err(error),
            None => Ok(response.tensors.into_iter().map(|(_, t)| t).collect()),
        }
    }

    /// Opens a session on the graph, fetches one tensor, and closes the session.
    pub async fn fetch(&self, graph: pb::GraphDef, fetch: &str) -> Result<Tensor> {
        let session_handle = self.create(graph).await?;
        let fetches = vec![fetch.to_string()];
        let request = RunStepRequest {
            session_handle: session_handle.clone(),
            fetches,
            ..RunStepRequest::default()
        };
        let result = self.step(request, HANG).await;
        self.close(&session_handle).await.expect("it was open");
        Ok(result?.remove(0))
    }

    /// Checks that a session on this graph is refused, or that fetching `x` fails.
    pub async fn refuses(&self, nodes: Vec<pb::NodeDef>, code: Code, text: &str) {
        self.refuses_graph(graph(nodes), code, text).await;
    }

    pub async fn refuses_graph(&self, graph: pb::GraphDef, code: Code, text: &str) {
        match self.fetch(graph, "x:0").await {
            Err(e) => expect(&e, code, text),
            Ok(t) => panic!("got {t:?} where {code:?} was expected: {text}"),
        }
        self.works().await;
    }

    /// Checks that the server still works.
    pub async fn works(&self) {
        let sum = node("sum", "AddV2", &["a", "a"]).attr("T", DType::Float);
        let got = self.fetch(graph(vec![scalar("a", 2.0), sum]), "sum:0").await.expect("a sum");
        assert_eq!(got, Tensor::scalar(4.0f32));
    }
}

pub fn expect(e: &Error, code: Code, text: &str) {
    assert_eq!(e.code(), code, "{e}");
    assert!(e.message().contains(text), "{text:?} is not in: {e}");
}

pub fn encode(message: &impl Message) -> Bytes {
    message.encode_to_vec().into()
}

pub fn graph(node: Vec<pb::NodeDef>) -> pb::GraphDef {
    pb::GraphDef { node, ..pb::GraphDef::default() }
}

pub fn node(name: &str, op: &str, inputs: &[&str]) -> pb::NodeDef {
    pb::NodeDef {
        name: name.into(),
        op: op.into(),
        input: inputs.iter().map(|s| s.to_string()).collect(),
        ..pb::NodeDef::default()
    }
}

/// Builds attributes.
pub trait WithAttr {
    fn attr(self, name: &str, value: impl IntoValue) -> Self;
}

impl WithAttr for pb::NodeDef {
    fn attr(mut self, name: &str, value: impl IntoValue) -> Self {
        let value = pb::AttrValue { value: Some(value.into_value()) };
        self.attr.insert(name.into(), value);
        self
    }
}

pub trait IntoValue {
    fn into_value(self) -> Value;
}

macro_rules! into_value {
    ($($t:ty: $x:ident => $value:expr;)*) => {$(
        impl IntoValue for $t {
            fn into_value(self) -> Value {
                let $x = self;
                $value
            }
        }
    )*};
}
into_value! {
    Value: x => x;
    DType: x => Value::Type(x.number());
    i64: x => Value::I(x);
    bool: x => Value::B(x);
    &str: x => Value::S(Bytes::copy_from_slice(x.as_bytes()));
    pb::TensorProto: x => Value::Tensor(Box::new(x));
    pb::TensorShapeProto: x => Value::Shape(x);
    Vec<DType>: x => Value::List(Box::new(pb::attr_value::ListValue {
        r#type: x.iter().map(|t| t.number()).collect(),
        ..Default::default()
    }));
}

pub fn func(name: &str) -> Value {
    Value::Func(pb::NameAttrList { name: name.into(), ..Default::default() })
}

pub fn shape(dims: &[i64]) -> pb::TensorShapeProto {
    let dim = |&size: &i64| pb::tensor_shape_proto::Dim { size, ..Default::default() };
    pb::TensorShapeProto { dim: dims.iter().map(dim).collect(), unknown_rank: false }
}

pub fn tensor(dtype: DType, dims: &[i64]) -> pb::TensorProto {
    pb::TensorProto {
        dtype: dtype.number(),
        tensor_shape: Some(shape(dims)),
        ..pb::TensorProto::default()
    }
}

pub fn constant(name: &str, value: pb::TensorProto) -> pb::NodeDef {
    let dtype = Value::Type(value.dtype);
    node(name, "Const", &[]).attr("dtype", dtype).attr("value", value)
}

pub fn scalar(name: &str, value: f32) -> pb::NodeDef {
    constant(name, pb::TensorProto { float_val: vec![value], ..tensor(DType::Float, &[]) })
}

pub fn int64s(name: &str, values: &[i64]) -> pb::NodeDef {
    let shape = [values.len() as i64];
    constant(name, pb::TensorProto { int64_val: values.to_vec(), ..tensor(DType::Int64, &shape) })
}

/// `name = op(inputs)` over floats.
pub fn float_op(name: &str, op: &str, inputs: &[&str]) -> pb::NodeDef {
    node(name, op, inputs).attr("T", DType::Float)
}
