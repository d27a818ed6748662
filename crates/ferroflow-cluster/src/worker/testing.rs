//! What unit tests of a worker need.

use super::transport::{Native, Transport};
use crate::channels::Channels;
use crate::link::{DataPath, Identity, Links, Token};
use crate::net::System;
use std::sync::Arc;

/// A transport without any links.
pub(super) fn unlinked() -> Arc<dyn Transport> {
    let own = Identity {
        task: "/job:worker/replica:0/task:0".into(),
        incarnations: vec![1],
        token: Token::default(),
        path: DataPath::Grpc,
        local_name: String::new(),
    };
    let channels = Arc::<Channels>::default();
    let links = Links::new(Arc::new(own), channels.clone(), Arc::new(System));
    Arc::new(Native::new(channels, links))
}
