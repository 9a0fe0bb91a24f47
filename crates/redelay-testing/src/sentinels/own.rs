//! What only redelay's own tests set.

use super::{DOWN_LATER, Sentinels, SentinelsBuilder};

impl Sentinels {
    /// Returns the settings before the start.
    #[must_use]
    pub fn builder() -> SentinelsBuilder {
        SentinelsBuilder { name: "main".into(), password: None, sentinel_password: None }
    }

    /// No master is replaced because a busy machine is slow, until [`failover`](Self::failover) or
    /// [`wait_for_other_master`](Self::wait_for_other_master).
    ///
    /// # Panics
    /// Panics if a sentinel is down.
    #[track_caller]
    pub fn be_patient(&self) {
        for sentinel in &self.sentinels {
            sentinel.order::<()>(self.down_after(DOWN_LATER));
        }
    }
}

impl SentinelsBuilder {
    /// Sets the name of the master. Defaults to `main`.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the password of the master and its replicas. Defaults to none. It must not contain a space, a
    /// quote or a backslash: a sentinel does not quote it when it writes its configuration file.
    #[must_use]
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// Sets the password of the sentinels, with the same limits. Defaults to none.
    #[must_use]
    pub fn sentinel_password(mut self, password: impl Into<String>) -> Self {
        self.sentinel_password = Some(password.into());
        self
    }
}
