//! A member fails when another one stops answering and no master notices.

use super::*;
use crate::spec::ClusterSpec;
use crate::worker::unlinked;
use ferroflow_core::{Code, DType, Shape};
use tokio::net::TcpListener;

/// Task 0 of two. The other one accepts connections and never answers.
async fn beside_a_silent_task() -> (TcpListener, Arc<TaskCollectives>, Arc<View>) {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    let cluster = ClusterSpec::parse(&format!("worker=127.0.0.1:1,{address}")).unwrap();
    let view = View::new(&cluster, "worker", 0, &[], unlinked());
    (silent, TaskCollectives::new(Arc::default(), Arc::new(RecentIds::new(100))), Arc::new(view))
}

const SILENT: &str = "/job:worker/replica:0/task:1";

fn member(task: u32) -> GroupMember {
    let device = DeviceInfo::cpu("worker", task, 0, 1);
    GroupMember { task: device.name.task_name(), device, place: task as usize }
}

#[tokio::test]
async fn a_call_to_a_silent_task_fails() {
    let (_silent, task, view) = beside_a_silent_task().await;
    let e = task.next_step(&view, SILENT, 1).await.unwrap_err();
    assert_eq!(e.code(), Code::Unavailable, "{e}");
    assert!(e.message().contains(SILENT), "{e}");
}

#[tokio::test]
async fn providing_to_a_silent_task_fails() {
    let (_silent, task, view) = beside_a_silent_task().await;
    let group = ResolvedGroup(vec![member(0), member(1)]);
    let call = CollectiveCall {
        kind: CollectiveKind::Broadcast { is_source: true },
        name: "send".into(),
        group_key: 1,
        group_size: 2,
        instance_key: 1,
        rank: None,
        frame_iter: (0, 0),
        device: Arc::new(member(0).device),
        dtype: DType::UInt8,
        shape: Shape::from([1]),
        tensor: None,
        timeout: None,
    };
    let (leader, known) = (view.name.clone(), Groups::default());
    let part = CollectivePart { task, view, leader, known, step_id: 1, call };
    let ring = ring::Ring { part: &part, group: &group, rank: 0, provided: Mutex::default() };
    ring.broadcast(Some(vec![7]), 0).await.unwrap();
    let e = ring.all_taken().await.unwrap_err();
    assert_eq!(e.code(), Code::Unavailable, "{e}");
    assert!(e.message().contains(SILENT), "{e}");
}
