//! The leader of collectives: resolves the members of groups, the senders of broadcasts, and the
//! numbers of steps.

use crate::messages::{
    CompleteGroupRequest, CompleteGroupResponse, CompleteInstanceRequest, CompleteInstanceResponse,
};
use crate::wire::DeviceMessage;
use ferroflow_core::{DeviceName, Error, Result, ensure, err};
use parking_lot::Mutex;
use std::collections::HashMap;
use tokio::sync::watch;

/// The limit for groups, broadcasts and graphs.
const MOST: usize = 1 << 16;

/// The members of a complete group, and their ranks if clients chose any; or the error of the
/// group.
type Members = Option<Result<(Vec<DeviceMessage>, Vec<i32>), Error>>;

struct Joined {
    name: DeviceName,
    device: DeviceMessage,
    /// The rank that its client chose, or -1.
    rank: i32,
}

struct FormingGroup {
    size: i32,
    device_type: String,
    /// In rank order.
    members: Vec<Joined>,
    complete: watch::Sender<Members>,
}

struct Broadcast {
    source: watch::Sender<Option<i32>>,
    /// The number of members that have asked.
    asked: i32,
}

#[derive(Default)]
pub(crate) struct Leader {
    groups: Mutex<HashMap<i32, FormingGroup>>,
    broadcasts: Mutex<HashMap<(i64, i32, i32), Broadcast>>,
    /// The next step of each graph.
    sequences: Mutex<HashMap<i64, i64>>,
}

impl Leader {
    /// Adds a member to a group. Answers when all members have joined.
    pub async fn complete_group(
        &self,
        request: CompleteGroupRequest,
    ) -> Result<CompleteGroupResponse> {
        let Some(device) = request.device.clone() else {
            return Err(err!(InvalidArgument, "device_attributes must be set"));
        };
        let mut told = self.join(&request, device)?;
        let members = told.wait_for(Option::is_some).await;
        let members = members.ok().and_then(|m| m.clone());
        let (members, ranks) =
            members.unwrap_or_else(|| Err(err!(Internal, "a collective group was dropped")))?;
        let mut tasks: Vec<String> = members
            .iter()
            .filter_map(|m| Some(DeviceName::parse(m.name()).ok()?.task_name()))
            .collect();
        tasks.sort_unstable();
        tasks.dedup();
        Ok(CompleteGroupResponse {
            group_key: request.group_key,
            group_size: request.group_size,
            device_type: request.device_type,
            num_tasks: tasks.len() as i32,
            devices: members,
            ranks,
        })
    }

    fn join(
        &self,
        request: &CompleteGroupRequest,
        joining: DeviceMessage,
    ) -> Result<watch::Receiver<Members>> {
        let (key, size) = (request.group_key, request.group_size);
        let name = joining.info()?.name;
        let mut groups = self.groups.lock();
        ensure!(
            groups.len() < MOST || groups.contains_key(&key),
            ResourceExhausted,
            "too many collective groups"
        );
        let group =
            groups.entry(key).or_insert_with(|| FormingGroup::new(size, &request.device_type));
        let device = joining.name();
        ensure!(
            group.device_type == request.device_type,
            Internal,
            "Device {device} is joining a group with device type {}, but that group has type {} \
             (group_key={key})",
            request.device_type,
            group.device_type
        );
        ensure!(
            group.size == size,
            Internal,
            "Device {device} is joining a group with size {size}, but that group has size {} \
             (group_key={key})",
            group.size
        );
        let rank = request.rank.unwrap_or(-1);
        let known = group.members.iter_mut().find(|m| m.name == name);
        if let Some(known) = known {
            if known.device.incarnation() == joining.incarnation() {
                // A member that joins again can change its rank until the group is complete.
                if group.complete.borrow().is_none() {
                    known.rank = rank;
                }
                return Ok(group.complete.subscribe());
            }
            // The task was restarted: all members must join again.
            let why = err!(Aborted, "{device} of collective group {key} was restarted").derived();
            group.complete.send_if_modified(|m| {
                let waits = m.is_none();
                if waits {
                    *m = Some(Err(why));
                }
                waits
            });
            *group = FormingGroup::new(size, &request.device_type);
        }
        ensure!(
            (group.members.len() as i32) < group.size,
            Internal,
            "Device {device} is joining collective group {key}, which has its {size} members"
        );
        group.members.push(Joined { name, device: joining, rank });
        let told = group.complete.subscribe();
        if group.members.len() as i32 == group.size {
            let all = group.all();
            let agree = all.is_ok();
            group.complete.send_replace(Some(all));
            if !agree {
                // The members can join again with other ranks.
                groups.remove(&key);
            }
        }
        Ok(told)
    }

    /// The sender of a broadcast, once it is known. Other collectives have none.
    pub async fn complete_instance(
        &self,
        request: CompleteInstanceRequest,
    ) -> Result<CompleteInstanceResponse> {
        let instance_key = request.instance_key;
        if request.collective_type != super::BROADCAST {
            return Ok(CompleteInstanceResponse { instance_key, source_rank: -1 });
        }
        let key = (request.step_id, request.group_key, instance_key);
        let source = match request.is_source {
            true => Some(self.rank(request.group_key, &request.device)?),
            false => None,
        };
        let mut told = {
            let mut broadcasts = self.broadcasts.lock();
            ensure!(broadcasts.len() < MOST, ResourceExhausted, "too many broadcasts under way");
            let broadcast = broadcasts
                .entry(key)
                .or_insert_with(|| Broadcast { source: watch::Sender::new(None), asked: 0 });
            broadcast.asked += 1;
            if let Some(rank) = source {
                let second = broadcast.source.borrow().is_some_and(|known| known != rank);
                ensure!(
                    !second,
                    Internal,
                    "Instance {instance_key} of group {} has a second source, {}",
                    request.group_key,
                    request.device
                );
                broadcast.source.send_replace(Some(rank));
            }
            let told = broadcast.source.subscribe();
            if broadcast.asked >= request.group_size {
                broadcasts.remove(&key);
            }
            told
        };
        // The last member has removed the entry, but the source is known by then.
        let source = told.wait_for(Option::is_some).await.ok().and_then(|s| *s);
        let source_rank = source.ok_or_else(|| {
            err!(
                Internal,
                "Instance {instance_key} found no source for broadcast.  This could mean that there \
                 were group_size={} BcastRecvs but no BcastSend.",
                request.group_size
            )
        })?;
        Ok(CompleteInstanceResponse { instance_key, source_rank })
    }

    fn rank(&self, group_key: i32, device: &str) -> Result<i32> {
        let groups = self.groups.lock();
        let members = groups.get(&group_key).map(|g| g.members.as_slice()).unwrap_or_default();
        let rank = members.iter().position(|m| m.device.name() == device);
        let rank = rank.ok_or_else(|| err!(Internal, "{device} is not in group {group_key}"))?;
        Ok(rank as i32)
    }

    /// The next step of a graph, if it is known on this task.
    pub fn known_step(&self, graph_key: i64) -> Option<i64> {
        self.sequences.lock().get(&graph_key).copied()
    }

    /// Sets the next step of a graph.
    pub fn set_step(&self, graph_key: i64, next: i64) -> Result<()> {
        let mut sequences = self.sequences.lock();
        ensure!(
            sequences.len() < MOST || sequences.contains_key(&graph_key),
            ResourceExhausted,
            "too many graphs with collectives"
        );
        sequences.insert(graph_key, next);
        Ok(())
    }

    /// Ends a step: advances to the next one, or forgets it so that the leader is asked again.
    pub fn end_step(&self, graph_key: i64, step_id: i64, forget: bool) {
        let mut sequences = self.sequences.lock();
        if forget {
            sequences.remove(&graph_key);
        } else if let Some(next) = sequences.get_mut(&graph_key).filter(|n| **n == step_id) {
            *next = (step_id + 1) & ((1 << 56) - 1);
        }
    }

    /// Graphs that several masters run together, and the next step of each.
    pub fn step_sequences(&self, graph_keys: &[i64]) -> Result<Vec<(i64, i64)>> {
        let mut sequences = self.sequences.lock();
        let next = |&graph_key: &i64| {
            ensure!(
                sequences.len() < MOST || sequences.contains_key(&graph_key),
                ResourceExhausted,
                "too many graphs with collectives"
            );
            let next = sequences.entry(graph_key).or_insert_with(|| fastrand::i64(0..1 << 56));
            Ok((graph_key, *next))
        };
        graph_keys.iter().map(next).collect()
    }
}

impl FormingGroup {
    fn new(size: i32, device_type: &str) -> FormingGroup {
        FormingGroup {
            size,
            device_type: device_type.into(),
            members: Vec::new(),
            complete: watch::Sender::new(None),
        }
    }

    /// All members sorted by device, and the ranks that their clients chose, if any.
    fn all(&mut self) -> Result<(Vec<DeviceMessage>, Vec<i32>)> {
        self.members.sort_by(|a, b| a.name.cmp(&b.name));
        let mut ranks: Vec<i32> = self.members.iter().map(|m| m.rank).collect();
        if ranks.iter().all(|&rank| rank < 0) {
            ranks.clear();
        }
        places(&ranks, self.members.len())?;
        Ok((self.members.iter().map(|m| m.device.clone()).collect(), ranks))
    }
}

/// The places of members by their ranks, or in order if no member has a rank.
pub(super) fn places(ranks: &[i32], size: usize) -> Result<Vec<usize>> {
    if ranks.is_empty() {
        return Ok((0..size).collect());
    }
    ensure!(
        ranks.iter().all(|&rank| rank >= 0),
        InvalidArgument,
        "Only part of the group members have user given rank specified. Received ranks: {ranks:?}"
    );
    let mut sorted = ranks.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    ensure!(
        sorted.len() == size && ranks.len() == size,
        InvalidArgument,
        "Duplicate ranks specified for group members. Received ranks: {ranks:?}"
    );
    ensure!(
        sorted.last().is_some_and(|&last| (last as usize) < size),
        InvalidArgument,
        "the ranks of a group of {size} are less than that. Received ranks: {ranks:?}"
    );
    Ok(ranks.iter().map(|&rank| rank as usize).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_core::{Code, DeviceInfo};

    fn member(task: u32, incarnation: u64, size: i32) -> CompleteGroupRequest {
        let name = format!("/job:worker/replica:0/task:{task}/device:CPU:0");
        let name = DeviceName::parse(&name).unwrap();
        CompleteGroupRequest {
            group_key: 7,
            group_size: size,
            device_type: "CPU".into(),
            collective_type: 0,
            rank: None,
            device: Some(DeviceMessage::of(&DeviceInfo::new(name, incarnation))),
        }
    }

    fn names(response: &CompleteGroupResponse) -> Vec<&str> {
        let task = |name: &'_ str| name.find("task:").map_or(0, |at| at + 5);
        let names = response.devices.iter().map(|d| d.name());
        names.map(|name| &name[task(name)..=task(name)]).collect()
    }

    #[tokio::test]
    async fn a_group_completes_when_all_members_have_joined() {
        let leader = Leader::default();
        let (a, b) = tokio::join!(
            leader.complete_group(member(2, 5, 2)),
            leader.complete_group(member(1, 6, 2))
        );
        assert_eq!((names(&a.unwrap()), names(&b.unwrap())), (vec!["1", "2"], vec!["1", "2"]));
        let e = leader.complete_group(member(3, 7, 2)).await.unwrap_err();
        assert_eq!(e.code(), Code::Internal);
        let e = leader.complete_group(member(1, 6, 3)).await.unwrap_err();
        assert!(e.message().contains("that group has size 2"), "{e}");
        // A restarted member waits until the others join again.
        let (a, b) = tokio::join!(
            leader.complete_group(member(1, 8, 2)),
            leader.complete_group(member(2, 5, 2))
        );
        assert_eq!(a.unwrap().devices[0].incarnation(), 8);
        assert_eq!(b.unwrap().num_tasks, 2);
    }

    #[tokio::test]
    async fn ranks_of_clients_must_be_complete_and_distinct() {
        let leader = Leader::default();
        let ask = |task: u32, rank: i32| {
            let rank = (rank >= 0).then_some(rank);
            let request = CompleteGroupRequest { rank, ..member(task, 5, 2) };
            leader.complete_group(request)
        };
        for (ranks, why) in [
            ((0, 0), "Duplicate ranks"),
            ((0, -1), "Only part"),
            ((0, 2), "of a group of 2 are less"),
        ] {
            let (a, b) = tokio::join!(ask(0, ranks.0), ask(1, ranks.1));
            let (a, b) = (a.unwrap_err(), b.unwrap_err());
            assert_eq!((a.code(), b.code()), (Code::InvalidArgument, Code::InvalidArgument));
            assert!(a.message().contains(why), "{a}");
        }
        // A member that gave up can join again with another rank.
        tokio::select! {
            biased;
            _ = ask(0, 0) => panic!("a group of two has one member"),
            () = std::future::ready(()) => {}
        }
        let (a, b) = tokio::join!(ask(0, 1), ask(1, 0));
        assert_eq!((a.unwrap().ranks, b.unwrap().ranks), (vec![1, 0], vec![1, 0]));
        assert_eq!(ask(0, 0).await.unwrap().ranks, [1, 0]);
    }

    #[tokio::test]
    async fn a_broadcast_has_one_source() {
        let leader = Leader::default();
        let _ = tokio::join!(
            leader.complete_group(member(0, 5, 2)),
            leader.complete_group(member(1, 6, 2))
        );
        let ask = |task: u32, is_source| {
            leader.complete_instance(CompleteInstanceRequest {
                collective_type: 1,
                group_key: 7,
                group_size: 2,
                instance_key: 3,
                device: format!("/job:worker/replica:0/task:{task}/device:CPU:0"),
                is_source,
                ..Default::default()
            })
        };
        let (a, b) = tokio::join!(ask(0, false), ask(1, true));
        assert_eq!((a.unwrap().source_rank, b.unwrap().source_rank), (1, 1));
        let (a, b) = tokio::join!(ask(0, false), ask(1, false));
        assert!(a.is_err() && b.unwrap_err().message().contains("no BcastSend"));
    }
}
