//! Sessions, graphs and containers belong to the identity that made them.

use super::fixture::*;
use ferroflow_cluster::{Credentials, DataPath, Trust};
use ferroflow_core::{Code, DType, PartialShape};
use ferroflow_graph::GraphDef;
use ferroflow_proto::tensorflow as pb;
use ferroflow_testing::graph;

const PERMISSION_DENIED: u32 = 7;

/// A variable with an initial value on the ps.
fn variable() -> GraphDef {
    graph()
        .dtype(DType::Float)
        .op("v", "VariableV2", &[])
        .attr("dtype", DType::Float)
        .attr("shape", PartialShape::new([]))
        .attr("shared_name", "v")
        .attr("container", "")
        .device("/job:ps/task:0")
        .constant("seven", 7.0f32)
        .op("set", "Assign", &["v", "seven"])
        .t()
        .device("/job:ps/task:0")
        .op("get", "Identity", &["v"])
        .t()
        .device("/job:worker/task:0")
        .build()
}

async fn reset(cluster: &SecureCluster, at: &str, client: &Credentials) -> Result<(), u32> {
    let request = pb::ResetRequest { container: vec![], ..Default::default() };
    let done: Result<pb::ResetResponse, _> =
        cluster.call(at, client, "MasterService/Reset", request).await;
    done.map(|_| ()).map_err(|status| status.code as u32)
}

#[tokio::test(flavor = "multi_thread")]
async fn another_client_cannot_end_or_use_a_session() {
    let cluster = SecureCluster::start(DataPath::Auto).await;
    let (ann, bob) = (cluster.client("ann"), cluster.client("bob"));
    let session = cluster.session(&ann, &variable()).await.unwrap();
    session.run(vec![], &[], &["set"], Some(FOREVER)).await.unwrap();
    let request = pb::CreateSessionRequest {
        graph_def: Some(ferroflow_graph::wire::graph::graph_to_proto(&variable()).unwrap()),
        ..Default::default()
    };
    let made: pb::CreateSessionResponse =
        cluster.call(&cluster.worker, &ann, "MasterService/CreateSession", request).await.unwrap();
    let handle = made.session_handle;
    assert!(handle.len() >= 32, "a handle must not be guessable: {handle}");
    let close = pb::CloseSessionRequest { session_handle: handle.clone() };
    let method = "MasterService/CloseSession";
    let refused: Result<pb::CloseSessionResponse, _> =
        cluster.call(&cluster.worker, &bob, method, close.clone()).await;
    assert_eq!(refused.unwrap_err().code as u32, PERMISSION_DENIED);
    let list = pb::ListDevicesRequest { session_handle: handle };
    let refused: Result<pb::ListDevicesResponse, _> =
        cluster.call(&cluster.worker, &bob, "MasterService/ListDevices", list).await;
    assert_eq!(refused.unwrap_err().code as u32, PERMISSION_DENIED);
    // Bob may not clear what Ann has made, and his reset leaves her sessions alone.
    assert_eq!(reset(&cluster, &cluster.worker, &bob).await, Err(PERMISSION_DENIED));
    let value = session.run(vec![], &["get:0"], &[], Some(FOREVER)).await.unwrap();
    assert_eq!(value[0].scalar_value::<f32>().unwrap(), 7.0);
    let closed: Result<pb::CloseSessionResponse, _> =
        cluster.call(&cluster.worker, &ann, method, close).await;
    closed.unwrap();
    assert_eq!(reset(&cluster, &cluster.worker, &ann).await, Ok(()));
    let e = session.run(vec![], &["get:0"], &[], Some(FOREVER)).await.unwrap_err();
    assert!(matches!(e.code(), Code::Aborted | Code::Cancelled), "{e}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_can_allow_every_client_to_reset() {
    let open = |trust| Trust { allow_foreign_reset: Some(true), ..trust };
    let cluster = SecureCluster::with(DataPath::Auto, open).await;
    let (ann, bob) = (cluster.client("ann"), cluster.client("bob"));
    let session = cluster.session(&ann, &variable()).await.unwrap();
    session.run(vec![], &[], &["set"], Some(FOREVER)).await.unwrap();
    assert_eq!(reset(&cluster, &cluster.worker, &bob).await, Ok(()));
    assert!(session.run(vec![], &["get:0"], &[], Some(FOREVER)).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forged_master_ends_no_session() {
    let cluster = SecureCluster::start(DataPath::Auto).await;
    let (ann, mallory) = (cluster.client("ann"), cluster.client("mallory"));
    let session = cluster.session(&ann, &variable()).await.unwrap();
    session.run(vec![], &[], &["set"], Some(FOREVER)).await.unwrap();
    // Says that the worker's master has restarted, as a new incarnation.
    let forged = |task: &str| pb::CreateWorkerSessionRequest {
        session_handle: "forged".into(),
        master_task: task.into(),
        master_incarnation: 4242,
        ..Default::default()
    };
    let worker = "/job:worker/replica:0/task:0";
    let method = "WorkerService/CreateWorkerSession";
    let refused: Result<pb::CreateWorkerSessionResponse, _> =
        cluster.call(&cluster.ps, &mallory, method, forged(worker)).await;
    assert_eq!(refused.unwrap_err().code as u32, PERMISSION_DENIED, "it is not that task");
    // A certificate for the whole job may say so, and still ends nothing of others.
    let generic = cluster.authority.credentials(&[], &["127.0.0.1".into()], 1).unwrap();
    let made: Result<pb::CreateWorkerSessionResponse, _> =
        cluster.call(&cluster.ps, &generic, method, forged(worker)).await;
    made.unwrap();
    let value = session.run(vec![], &["get:0"], &[], Some(FOREVER)).await.unwrap();
    assert_eq!(value[0].scalar_value::<f32>().unwrap(), 7.0);
    // Nor does it run, register or delete in the sessions of others.
    let delete = pb::DeleteWorkerSessionRequest { session_handle: "forged".into() };
    let refused: Result<pb::DeleteWorkerSessionResponse, _> =
        cluster.call(&cluster.ps, &mallory, "WorkerService/DeleteWorkerSession", delete).await;
    assert_eq!(refused.unwrap_err().code as u32, PERMISSION_DENIED);
    let clear = pb::CleanupAllRequest { container: vec![] };
    let refused: Result<pb::CleanupAllResponse, _> =
        cluster.call(&cluster.ps, &mallory, "WorkerService/CleanupAll", clear).await;
    assert_eq!(refused.unwrap_err().code as u32, PERMISSION_DENIED);
    let value = session.run(vec![], &["get:0"], &[], Some(FOREVER)).await.unwrap();
    assert_eq!(value[0].scalar_value::<f32>().unwrap(), 7.0);
}

/// A client with sessions at several masters may reset all of them, through any. Another one may
/// not, whichever master it asks.
#[tokio::test(flavor = "multi_thread")]
async fn a_reset_through_any_master_is_that_of_its_client() {
    let cluster = SecureCluster::start(DataPath::Auto).await;
    let (ann, bob) = (cluster.client("ann"), cluster.client("bob"));
    let at_worker = cluster.session(&ann, &variable()).await.unwrap();
    at_worker.run(vec![], &[], &["set"], Some(FOREVER)).await.unwrap();
    // Bob asks a master that Ann has not used.
    assert_eq!(reset(&cluster, &cluster.ps, &bob).await, Err(PERMISSION_DENIED));
    let value = at_worker.run(vec![], &["get:0"], &[], Some(FOREVER)).await.unwrap();
    assert_eq!(value[0].scalar_value::<f32>().unwrap(), 7.0);
    let at_ps = session(&format!("grpcs://{}", cluster.ps), Some(&ann), &variable()).await.unwrap();
    at_ps.run(vec![], &[], &["set"], Some(FOREVER)).await.unwrap();
    assert_eq!(reset(&cluster, &cluster.worker, &ann).await, Ok(()));
    assert_eq!(reset(&cluster, &cluster.ps, &ann).await, Ok(()));
}
