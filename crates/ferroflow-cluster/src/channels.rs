//! Connections to other tasks, shared by all callers.

use crate::error::from_status;
use crate::liveness::Liveness;
use crate::net::{NetworkConnector, SystemNetwork, TaskNetwork};
use crate::rpc::Channel;
use crate::rpc::client::ChannelOptions;
use ferroflow_core::{HashMap, Result};
use parking_lot::Mutex;
use std::sync::Arc;

/// Connections without a user are closed when there are more than this: clients can describe
/// clusters with any addresses.
const MOST_ADDRESSES: usize = 4096;

/// One connection for each address, opened on first use.
pub(crate) struct Channels {
    network: Arc<dyn TaskNetwork>,
    by_address: Mutex<HashMap<String, Channel>>,
    liveness: Mutex<HashMap<String, Arc<Liveness>>>,
}

impl Default for Channels {
    fn default() -> Channels {
        Channels::over(Arc::new(SystemNetwork))
    }
}

impl Channels {
    pub fn over(network: Arc<dyn TaskNetwork>) -> Channels {
        Channels { network, by_address: Mutex::default(), liveness: Mutex::default() }
    }

    pub fn get(&self, address: &str) -> Result<Channel> {
        let mut known = self.by_address.lock();
        if let Some(channel) = known.get(address) {
            return Ok(channel.clone());
        }
        let channel = Channel::connect_with(
            address,
            ChannelOptions::default(),
            NetworkConnector(self.network.clone()),
        )
        .map_err(|s| from_status(&s))?;
        if known.len() >= MOST_ADDRESSES {
            known.retain(|_, channel| channel.is_shared());
        }
        known.insert(address.to_string(), channel.clone());
        Ok(channel)
    }

    /// The liveness of the task at an address, shared by all waiters.
    pub fn liveness(&self, address: &str) -> Arc<Liveness> {
        let mut known = self.liveness.lock();
        match known.get(address) {
            Some(liveness) => liveness.clone(),
            None if known.len() >= MOST_ADDRESSES => {
                known.retain(|_, liveness| Arc::strong_count(liveness) > 1);
                known.entry(address.to_string()).or_default().clone()
            }
            None => known.entry(address.to_string()).or_default().clone(),
        }
    }
}
