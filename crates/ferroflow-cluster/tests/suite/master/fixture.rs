//! A cluster in one process.

use ferroflow_cluster::{
    ClusterSpec, ConnectOptions, DataPath, RemoteSession, Server, ServerOptions,
};
use ferroflow_core::{Gpu, Result, Tensor};
use ferroflow_graph::{Catalog, GraphDef};
use std::collections::HashMap;
use std::net::TcpListener;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::runtime::Runtime;

/// A timeout that only a hang reaches.
pub const FOREVER: Duration = Duration::from_secs(60);

pub const PS: &str = "/job:ps/task:0";
pub const WORKER0: &str = "/job:worker/task:0";
pub const WORKER1: &str = "/job:worker/task:1";

static CATALOG: LazyLock<Arc<Catalog>> = LazyLock::new(|| {
    let mut catalog = Catalog::new();
    ferroflow_ops::register(&mut catalog);
    Arc::new(catalog)
});

/// Tasks by name.
pub struct Cluster {
    addresses: HashMap<&'static str, String>,
    servers: HashMap<&'static str, Runtime>,
    session_timeout: Duration,
    paths: HashMap<&'static str, DataPath>,
    gpus: HashMap<&'static str, Arc<dyn Gpu>>,
}

impl Cluster {
    /// One ps and two workers.
    pub fn start() -> Cluster {
        let cluster = Cluster::of(&[PS, WORKER0, WORKER1], &[], FOREVER);
        let Cluster { addresses, .. } = &cluster;
        assert_eq!(addresses.len(), 3);
        cluster
    }

    /// One ps and two workers, each with its own data path.
    pub fn over(paths: &[DataPath; 3]) -> Cluster {
        Cluster::with_gpus(paths, [])
    }

    /// The same with GPUs on some tasks.
    pub fn with_gpus<const N: usize>(
        paths: &[DataPath; 3],
        gpus: [(&'static str, Arc<dyn Gpu>); N],
    ) -> Cluster {
        let tasks = [PS, WORKER0, WORKER1];
        let mut cluster = Cluster::of(&tasks, &tasks, FOREVER);
        cluster.gpus = gpus.into();
        cluster.paths = tasks.into_iter().zip(paths.iter().copied()).collect();
        let listeners = tasks.map(|task| (task, TcpListener::bind("127.0.0.1:0").unwrap()));
        for (task, listener) in &listeners {
            cluster.addresses.insert(task, listener.local_addr().unwrap().to_string());
        }
        listeners.into_iter().for_each(|(task, listener)| cluster.serve(task, listener));
        cluster
    }

    /// Starts `tasks` except those that are `absent`. Ports stay reserved until they are served.
    pub fn of(tasks: &[&'static str], absent: &[&str], session_timeout: Duration) -> Cluster {
        let listeners: Vec<TcpListener> =
            tasks.iter().map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let address = |l: &TcpListener| l.local_addr().unwrap().to_string();
        let addresses = tasks.iter().copied().zip(listeners.iter().map(address)).collect();
        let (servers, paths, gpus) = (HashMap::new(), HashMap::new(), HashMap::new());
        let mut cluster = Cluster { addresses, servers, session_timeout, paths, gpus };
        for (task, listener) in tasks.iter().copied().zip(listeners) {
            if !absent.contains(&task) {
                cluster.serve(task, listener);
            }
        }
        cluster
    }

    /// The other tasks know the ps by another address than its own.
    pub fn with_ps_behind(proxy: impl FnOnce(String) -> String) -> Cluster {
        let mut cluster = Cluster::of(&[PS, WORKER0], &[PS, WORKER0], FOREVER);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = proxy(listener.local_addr().unwrap().to_string());
        cluster.addresses.insert(PS, at);
        cluster.serve(PS, listener);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        cluster.addresses.insert(WORKER0, listener.local_addr().unwrap().to_string());
        cluster.serve(WORKER0, listener);
        cluster
    }

    fn serve(&mut self, task: &'static str, listener: TcpListener) {
        let (job, index) = split(task);
        let options = ServerOptions {
            session_timeout: self.session_timeout,
            data_path: self.paths.get(task).copied().unwrap_or_default(),
            gpus: self.gpus.get(task).cloned().into_iter().collect(),
            ..ServerOptions::new(self.spec(), job, index)
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        listener.set_nonblocking(true).unwrap();
        runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            let server = Server::listening(listener, options, CATALOG.clone()).unwrap();
            server.serve(std::future::pending()).await;
        });
        self.servers.insert(task, runtime);
    }

    /// Serves a task at the address of another.
    pub fn serve_as(&mut self, task: &'static str, at: &str) {
        let listener = TcpListener::bind(&self.addresses[at]).unwrap();
        self.serve(task, listener);
    }

    fn spec(&self) -> ClusterSpec {
        let tasks = self.addresses.iter().map(|(task, address)| {
            let (job, index) = split(task);
            (job, index as i32, address.as_str())
        });
        ClusterSpec::from_tasks(tasks).unwrap()
    }

    pub fn address(&self, task: &str) -> &str {
        &self.addresses[task]
    }

    /// Ends the task and its connections.
    pub fn kill(&mut self, task: &str) {
        self.servers.remove(task).unwrap().shutdown_background();
    }

    /// Starts a killed task again at its old address.
    pub async fn restart(&mut self, task: &'static str) {
        let address = self.addresses[task].clone();
        loop {
            // The port is free when the last thread of the old task has ended.
            if let Ok(listener) = TcpListener::bind(&address) {
                return self.serve(task, listener);
            }
            tokio::task::yield_now().await;
        }
    }

    pub async fn session(&self, task: &str, graph: &GraphDef) -> RemoteSession {
        self.try_session(task, graph).await.unwrap()
    }

    pub async fn try_session(&self, task: &str, graph: &GraphDef) -> Result<RemoteSession> {
        self.session_with(task, graph, ConnectOptions::default()).await
    }

    pub async fn session_with(
        &self,
        task: &str,
        graph: &GraphDef,
        options: ConnectOptions,
    ) -> Result<RemoteSession> {
        let target = format!("grpc://{}", self.addresses[task]);
        let options = ConnectOptions { timeout: FOREVER, ..options };
        RemoteSession::connect_with(&target, graph, &options).await
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for (_, runtime) in self.servers.drain() {
            runtime.shutdown_background();
        }
    }
}

fn split(task: &str) -> (&str, u32) {
    let rest = task.strip_prefix("/job:").unwrap();
    let (job, index) = rest.split_once("/task:").unwrap();
    (job, index.parse().unwrap())
}

/// Runs one step and returns its fetches, which are scalars.
pub async fn floats(session: &RemoteSession, fetches: &[&str]) -> Result<Vec<f32>> {
    let tensors = session.run(vec![], fetches, &[], Some(FOREVER)).await?;
    tensors.iter().map(Tensor::scalar_value).collect()
}
