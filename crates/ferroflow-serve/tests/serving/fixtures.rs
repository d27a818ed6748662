//! Models for the tests, exported by our own code, and a server for them.

use ferroflow_core::{DType, Tensor};
use ferroflow_identity::Trust;
use ferroflow_serve::{ModelServer, ModelServerOptions, ModelSource, Models, ModelsOptions};
use ferroflow_train::feature_column::{FeatureSpec, parse_examples};
use ferroflow_train::{Graph, SavedModelBuilder, Session, Signature};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;

/// The longest wait of a test.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// A folder that is removed at the end of a test.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (id, n) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(format!("ferroflow-serving-{id}-{n}"));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// y = x / 2 + `b`, with variables. A second signature returns a scalar for any batch.
pub fn export_half_plus(b: f32, to: &Path) {
    let g = Graph::new();
    let x = g.placeholder::<f32>("x", [None]);
    let y = &(&x * &g.variable("a", 0.5)) + &g.variable("b", b);
    let axis = g.constant([0i32]);
    let total = g.op("Sum").input(&y).input(&axis).output();
    let model = SavedModelBuilder::new(&g)
        .signature("serving_default", Signature::predict().input("x", &x).output("y", &y))
        .signature("total", Signature::predict().input("x", &x).output("total", &total));
    save(&g, &model, to);
}

/// Rows of a table by index: an index outside fails the step.
pub fn export_lookup(to: &Path) {
    let g = Graph::new();
    let table = g.constant([[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]]);
    let i = g.placeholder::<i32>("i", [None]);
    let axis = g.constant(0i32);
    let rows = g.op("GatherV2").input(&table).input(&i).input(&axis).output();
    let model = SavedModelBuilder::new(&g)
        .signature("serving_default", Signature::predict().input("i", &i).output("rows", &rows));
    save(&g, &model, to);
}

/// Classifies and regresses examples with the features `x` and `bias`, which is 10 by default.
pub fn export_examples(to: &Path) {
    let g = Graph::new();
    let serialized = g.placeholder_of(DType::String, "examples", [None]);
    let fixed = |default| FeatureSpec::Fixed { dtype: DType::Float, width: 1, default };
    let spec = [("bias".to_string(), fixed(Some(10.0))), ("x".to_string(), fixed(None))].into();
    let features = parse_examples(&serialized, &spec);
    let (x, bias) = (features.tensor("x").unwrap(), features.tensor("bias").unwrap());
    let value = x + bias;
    let axis = g.constant(1i32);
    let scores = g.op("ConcatV2").list(&[value.clone(), &value * 2.0]).input(&axis).output();
    let labels = g.constant([["low", "high"]]);
    let rows = g.op("Shape").input(&serialized).attr("out_type", DType::Int32).output();
    let one = g.constant([1i32]);
    let axis = g.constant(0i32);
    let multiples = g.op("ConcatV2").list(&[rows, one]).input(&axis).output();
    let classes = g.op("Tile").input(&labels).input(&multiples).output();
    let classify = Signature::classify()
        .input("inputs", &serialized)
        .output("classes", &classes)
        .output("scores", &scores);
    let regress = Signature::regress().input("inputs", &serialized).output("outputs", &value);
    let model = SavedModelBuilder::new(&g)
        .signature("serving_default", classify)
        .signature("value", regress);
    save(&g, &model, to);
}

fn save(g: &Graph, model: &SavedModelBuilder, to: &Path) {
    g.check().unwrap();
    let session = Session::initialized(g).unwrap();
    model.save(&session, to).unwrap();
}

/// A server on free ports of this host.
pub struct Running {
    pub grpc: SocketAddr,
    pub rest: SocketAddr,
    pub models: Arc<Models>,
    stop: Option<oneshot::Sender<()>>,
    serving: tokio::task::JoinHandle<()>,
}

impl Running {
    pub async fn start(models: Vec<ModelSource>, loading: ModelsOptions) -> Running {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let trust = Trust::default();
        let options = ModelServerOptions { grpc: any, rest: Some(any), models, loading, trust };
        let server = ModelServer::bind(options).await.unwrap();
        let (grpc, rest) = (server.grpc_address(), server.rest_address().unwrap());
        let models = server.models().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(server.serve(async move { drop(stopped.await) }));
        Running { grpc, rest, models, stop: Some(stop), serving }
    }

    pub async fn stop(mut self) {
        drop(self.stop.take());
        tokio::time::timeout(DEADLINE, self.serving).await.unwrap().unwrap();
    }
}

pub fn floats(values: &[f32]) -> Tensor {
    Tensor::vector(values)
}
