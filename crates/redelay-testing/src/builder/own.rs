//! What only redelay's own tests set.

use super::ServerBuilder;
use crate::startup::Kind;
use crate::version::Version;

impl ServerBuilder {
    /// Sets the version of the server.
    ///
    /// # Panics
    /// Panics if it is not installed.
    #[must_use]
    pub fn version(self, version: Version) -> Self {
        self.executable(version.executable().unwrap_or_else(|sentence| panic!("{sentence}")))
    }

    /// Makes the server also listen on a socket file, at [`Server::unix_path`](crate::Server::unix_path).
    #[must_use]
    pub fn unix_socket(mut self) -> Self {
        self.unix_socket = true;
        self
    }

    /// Sets an environment variable of the server, for example `LD_PRELOAD`.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Makes it a sentinel. What it watches is in lines of its [`config`](Self::config).
    #[must_use]
    pub fn sentinel(self) -> Self {
        self.kind(Kind::Sentinel)
    }
}
