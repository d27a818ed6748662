//! Connections to other tasks, shared by all who call them.

use crate::error::from_status;
use crate::rpc::Channel;
use crate::rpc::client::Options;
use ferroflow_core::Result;
use parking_lot::Mutex;
use std::collections::HashMap;

/// One connection for each address, made when first needed.
#[derive(Default)]
pub(crate) struct Channels {
    by_address: Mutex<HashMap<String, Channel>>,
}

impl Channels {
    pub fn get(&self, address: &str) -> Result<Channel> {
        let mut known = self.by_address.lock();
        if let Some(channel) = known.get(address) {
            return Ok(channel.clone());
        }
        let channel = Channel::connect(address, Options::default()).map_err(|s| from_status(&s))?;
        known.insert(address.to_string(), channel.clone());
        Ok(channel)
    }
}
