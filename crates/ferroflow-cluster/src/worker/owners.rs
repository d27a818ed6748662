//! Sessions, graphs, steps and containers belong to the identity that made them.

use ferroflow_core::{HashMap, Result, bail};
use ferroflow_graph::{AttrValue, GraphDef, NodeDef};
use ferroflow_identity::{PeerIdentity, Trust};
use parking_lot::Mutex;
use std::sync::Arc;

/// Decides which caller may change what.
pub(crate) struct Owners {
    trust: Trust,
    /// Whether every caller may change everything.
    is_open: bool,
    /// This task's own master.
    pub here: Arc<PeerIdentity>,
    /// The identities that first used the containers of this task.
    containers: Mutex<HashMap<String, Arc<PeerIdentity>>>,
    /// The container of resources that name none.
    default_container: String,
}

impl Owners {
    pub fn new(trust: Trust, default_container: String) -> Owners {
        let is_open = trust.allows_foreign_reset();
        let here = Arc::new(PeerIdentity::ThisProcess);
        Owners { trust, is_open, here, containers: Mutex::default(), default_container }
    }

    /// Whether `caller` may change what belongs to `owner`.
    pub fn may(&self, owner: &Arc<PeerIdentity>, caller: &Arc<PeerIdentity>) -> bool {
        self.is_open || Arc::ptr_eq(owner, caller) || self.trust.may_touch(owner, caller)
    }

    /// Fails unless `caller` may change `what`, which belongs to `owner`.
    pub fn ensure(
        &self,
        owner: &Arc<PeerIdentity>,
        caller: &Arc<PeerIdentity>,
        what: impl FnOnce() -> String,
    ) -> Result<()> {
        if self.may(owner, caller) {
            return Ok(());
        }
        bail!(
            PermissionDenied,
            "{} belongs to {owner}, and {caller} may not use it (--allow-foreign-reset on the \
             server lets every caller end the sessions of others)",
            what()
        )
    }

    /// Remembers that `caller` was the first to use the containers of a graph.
    pub fn note_containers(&self, graph: &GraphDef, caller: &Arc<PeerIdentity>) {
        if self.is_open {
            return;
        }
        let bodies = graph.functions.iter().flat_map(|f| &f.nodes);
        let mut containers = self.containers.lock();
        for node in graph.nodes.iter().chain(bodies) {
            let Some(name) = container_of(node) else { continue };
            let name = if name.is_empty() { &self.default_container } else { &name };
            if !containers.contains_key(name) {
                containers.insert(name.clone(), caller.clone());
            }
        }
    }

    /// The containers that a request names, if `caller` may clear all of them; the default one if
    /// it names none.
    pub fn clear(&self, named: &[String], caller: &Arc<PeerIdentity>) -> Result<Vec<String>> {
        let default = std::slice::from_ref(&self.default_container);
        let names = if named.is_empty() { default } else { named };
        let mut containers = self.containers.lock();
        for name in names {
            if let Some(owner) = containers.get(name) {
                self.ensure(owner, caller, || format!("container {name:?}"))?;
            }
        }
        names.iter().for_each(|name| drop(containers.remove(name)));
        Ok(names.to_vec())
    }
}

/// The container in which the resource of a node lives, if it has one.
fn container_of(node: &NodeDef) -> Option<String> {
    match node.attrs.get("container")? {
        AttrValue::Str(name) => Some(String::from_utf8_lossy(name).into_owned()),
        _ => None,
    }
}
