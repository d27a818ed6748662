//! Fixtures for the unit tests of a worker.

use super::owners::Owners;
use super::session::{Sessions, WorkerSession};
use super::transport::{Native, Transport};
use super::view::View;
use crate::channels::Channels;
use crate::link::{DataPath, Identity, LinkTickets, Links};
use crate::net::SystemNetwork;
use crate::spec::ClusterSpec;
use ferroflow_graph::Catalog;
use ferroflow_identity::{PeerIdentity, Trust};
use ferroflow_runtime::Task;
use std::sync::Arc;

/// A transport without any links.
pub(crate) fn unlinked() -> Arc<dyn Transport> {
    let own = Identity {
        task: "/job:worker/replica:0/task:0".into(),
        incarnations: vec![1],
        tickets: LinkTickets::with([0; 16]),
        path: DataPath::Grpc,
        local_name: String::new(),
        ucx: None,
        gpus: Vec::new(),
    };
    let channels = Arc::<Channels>::default();
    let links = Links::new(Arc::new(own), channels.clone(), Arc::new(SystemNetwork));
    Arc::new(Native::new(channels, links))
}

/// A session of a task that is alone.
pub(super) fn session() -> Arc<WorkerSession> {
    session_with(unlinked())
}

/// The same with values carried by `transport` to another task, `/job:worker/replica:0/task:1`.
pub(super) fn session_with(transport: Arc<dyn Transport>) -> Arc<WorkerSession> {
    let task = Task::new(Arc::new(Catalog::new()), "worker", 0, 1);
    let cluster = ClusterSpec::parse("worker=a:1,b:2").expect("this is one");
    let view = View::new(&cluster, "worker", 0, &task.devices, transport);
    let sessions = Sessions::new(task, view, ferroflow_core::limits(), Trust::default());
    sessions.get("", &Arc::new(PeerIdentity::ThisProcess)).expect("it always exists")
}

/// Owners on a task that only its own user reaches.
pub(super) fn owners() -> Owners {
    Owners::new(Trust::default(), "worker".into())
}
