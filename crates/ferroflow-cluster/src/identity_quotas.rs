//! One quota for each identity: a caller that has used up its own does not keep others out.

use ferroflow_core::{HashMap, Limit, Quota, QuotaShare, Result};
use ferroflow_identity::PeerIdentity;
use parking_lot::Mutex;
use std::fmt::Display;
use std::sync::Arc;

/// Quotas without any use are forgotten when there are more than this.
const REMEMBERED: usize = 1024;

/// The use of each identity.
pub(crate) struct IdentityQuotas {
    limit: Limit,
    by_identity: Mutex<HashMap<Arc<PeerIdentity>, Arc<Quota>>>,
}

impl IdentityQuotas {
    /// Each identity may use up to `limit`.
    pub fn new(limit: Limit) -> IdentityQuotas {
        IdentityQuotas { limit, by_identity: Mutex::default() }
    }

    /// Takes `n` for `caller` until the result is dropped. An error, which calls the caller `who`,
    /// if its limit does not allow it.
    pub fn take(
        &self,
        n: usize,
        caller: &Arc<PeerIdentity>,
        who: impl Display,
    ) -> Result<QuotaShare> {
        let mut known = self.by_identity.lock();
        if known.len() > REMEMBERED {
            known.retain(|_, quota| quota.used() > 0);
        }
        let quota = known.entry(caller.clone()).or_insert_with(|| Quota::new(self.limit));
        quota.take(n, who)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_core::{Code, Limits};

    #[test]
    fn a_caller_at_its_limit_does_not_keep_another_out() {
        let quotas = IdentityQuotas::new(Limit { most: 2, ..Limits::DEFAULT.sessions });
        let [ann, bob] = [1, 2].map(|uid| Arc::new(PeerIdentity::User(uid)));
        let held = [quotas.take(1, &ann, "ann").unwrap(), quotas.take(1, &ann, "ann").unwrap()];
        let e = quotas.take(1, &ann, "ann").unwrap_err();
        assert_eq!(e.code(), Code::ResourceExhausted);
        assert!(quotas.take(2, &bob, "bob").is_ok());
        drop(held);
        assert!(quotas.take(2, &ann, "ann").is_ok());
    }
}
