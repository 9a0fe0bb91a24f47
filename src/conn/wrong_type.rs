//! Which key has another type than a command needs. The server does not say.

use bytes::Bytes;
use futures::future::join_all;
use tokio::time::Instant;

use super::op_error::is_wrong_type;
use super::{Command, Conn, OpError};
use crate::wire::keys::type_of;

/// The most keys whose types are read.
const MOST: usize = 100;

impl Conn {
    /// The same error of a command that uses these keys, with the names of those that have another type, if
    /// it is about types. The caller has time until `deadline`.
    pub(crate) async fn naming_keys(
        &self,
        error: OpError,
        command: &str,
        keys: &[Bytes],
        deadline: Instant,
    ) -> OpError {
        let OpError::Server(why) = error else { return error };
        if !is_wrong_type(&why) {
            return OpError::Server(why);
        }
        let error = OpError::Server(self.wrong_types(keys, deadline).await.unwrap_or(why));
        self.counters().failed(command, &error);
        error
    }

    /// Which of these keys have another type than they must have.
    async fn wrong_types(&self, keys: &[Bytes], deadline: Instant) -> Option<String> {
        let within = self.time_to_ask(deadline)?;
        let types = keys.iter().take(MOST).map(async |key| {
            let reply = self.call_within(&Command::new("TYPE").arg(key.clone()), within).await;
            Some((key, reply.ok()?.into_bytes().ok()?))
        });
        let wrong: Vec<_> = join_all(types)
            .await
            .into_iter()
            .flatten()
            .filter(|(key, found)| found != "none" && *found != type_of(key))
            .map(|(key, found)| wrong_type(key, &found))
            .collect();
        (!wrong.is_empty()).then(|| wrong.join("; "))
    }
}

/// The error of a key of another type.
pub(crate) fn wrong_type(key: &[u8], found: &[u8]) -> String {
    let (key, found) = (String::from_utf8_lossy(key), String::from_utf8_lossy(found));
    format!("WRONGTYPE the key `{key}` is a {found} and must be a {}", type_of(key.as_bytes()))
}
