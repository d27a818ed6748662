//! Sessions, graphs, steps and containers belong to the identity that made them.

use super::view::View;
use crate::identity_quotas::IdentityQuotas;
use ferroflow_core::{HashMap, Limit, QuotaShare, Result, bail, ensure};
use ferroflow_graph::{AttrValue, GraphDef, NodeDef};
use ferroflow_identity::{PeerIdentity, Trust};
use parking_lot::Mutex;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// Bytes of container names that the graphs of one identity may use.
const CONTAINER_NAMES: Limit =
    Limit { most: 16 << 20, what: "bytes of container names", flag: "a fixed limit" };

/// Decides what a caller may change.
pub(crate) struct Owners {
    trust: Trust,
    /// Whether every caller may change everything.
    pub is_open: bool,
    /// This task's own master.
    pub here: Arc<PeerIdentity>,
    /// The containers of this task.
    containers: Mutex<HashMap<String, Container>>,
    names: IdentityQuotas,
    /// The container of resources that name none.
    default_container: String,
}

struct Container {
    /// The client that used it first, in words.
    owner: String,
    _counted: QuotaShare,
}

impl Owners {
    pub fn new(trust: Trust, default_container: String) -> Owners {
        let is_open = trust.allows_foreign_reset();
        let here = Arc::new(PeerIdentity::ThisProcess);
        let (containers, names) = (Mutex::default(), IdentityQuotas::new(CONTAINER_NAMES));
        Owners { trust, is_open, here, containers, names, default_container }
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

    /// Whether `caller` may be a task of the cluster that a session sees.
    pub fn may_be_task(&self, caller: &PeerIdentity, view: &View) -> bool {
        self.is_open
            || match caller {
                PeerIdentity::ThisProcess => true,
                // Tasks of one host run as one user, whatever other users are let in.
                PeerIdentity::User(user) => Trust::default().admit_user(*user).is_ok(),
                // TensorFlow's tasks.
                PeerIdentity::Unverified => {
                    self.trust.is_insecure || !self.trust.insecure_peers.is_empty()
                }
                PeerIdentity::Certificate { roles, .. } => view.has_task(caller, roles),
            }
    }

    /// Remembers that `caller`, or the `client` for which it acts, was the first to use the
    /// containers of a graph. An error if it uses too many.
    pub fn note_containers(
        &self,
        graph: &GraphDef,
        caller: &Arc<PeerIdentity>,
        client: Option<&str>,
    ) -> Result<()> {
        if self.is_open {
            return Ok(());
        }
        let bodies = graph.functions.iter().flat_map(|f| &f.nodes);
        let mut containers = self.containers.lock();
        for node in graph.nodes.iter().chain(bodies) {
            let Some(name) = container_of(node) else { continue };
            let name = if name.is_empty() { self.default_container.clone() } else { name };
            if let Entry::Vacant(place) = containers.entry(name) {
                let bytes = place.key().len() + size_of::<Container>();
                let counted = self.names.take(bytes, caller, caller)?;
                let owner = client.map_or_else(|| caller.to_string(), str::to_string);
                place.insert(Container { owner, _counted: counted });
            }
        }
        Ok(())
    }

    /// The containers that a request names, if `caller`, or the `client` for which it acts, may
    /// clear all of them; the default one if it names none.
    pub fn clear(
        &self,
        named: &[String],
        caller: &Arc<PeerIdentity>,
        client: Option<&str>,
    ) -> Result<Vec<String>> {
        let own = caller.to_string();
        let default = std::slice::from_ref(&self.default_container);
        let names = if named.is_empty() { default } else { named };
        let mut containers = self.containers.lock();
        for name in names {
            let owner = containers.get(name).map(|container| container.owner.as_str());
            ensure!(
                self.is_open || owner.is_none_or(|owner| owner == own || Some(owner) == client),
                PermissionDenied,
                "container {name:?} belongs to {}, and {} may not clear it (--allow-foreign-reset \
                 on the server lets every caller clear the containers of others)",
                owner.unwrap_or_default(),
                client.unwrap_or(&own)
            );
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
