//! What the sentinels say of the master.

use serde::Serialize;

use super::Inspector;
use super::unknown::{Unknown, Unknowns};
use crate::conn::Opinion;

/// A sentinel, and what it says of the master of the URL. [`Inspector::sentinels`] returns it.
///
/// # Examples
/// ```no_run
/// # async fn example(inspector: redelay::inspector::Inspector) {
/// for sentinel in inspector.sentinels().await {
///     println!("{} names {:?}", sentinel.address, sentinel.master);
/// }
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct Sentinel {
    /// `host:port`.
    pub address: String,
    /// The master that it names, as `host:port`; `None` if it knows no master of this name.
    pub master: Option<String>,
    /// Whether it is in touch with enough sentinels to replace the master.
    pub has_quorum: Option<bool>,
    /// What it has refused to say; `server` if it does not answer.
    pub unknown: Vec<Unknown>,
}

impl Inspector {
    /// Asks each sentinel, those of the URL and those that they know, which master it names, and whether they
    /// are enough. `SENTINEL GET-MASTER-ADDR-BY-NAME`, `SENTINEL CKQUORUM` and `SENTINEL SENTINELS`. Empty if
    /// the URL names no sentinels.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(inspector: redelay::inspector::Inspector) {
    /// let sentinels = inspector.sentinels().await;
    /// # }
    /// ```
    pub async fn sentinels(&self) -> Vec<Sentinel> {
        self.conn.opinions().await.into_iter().map(of).collect()
    }
}

fn of(Opinion { sentinel: address, master, quorum }: Opinion) -> Sentinel {
    let mut unknowns = Unknowns::default();
    let master = unknowns.known("master", "SENTINEL GET-MASTER-ADDR-BY-NAME", master);
    let quorum = unknowns.known("has_quorum", "SENTINEL CKQUORUM", quorum);
    match (master, quorum) {
        (Ok(master), Ok(has_quorum)) => {
            Sentinel { address, master: master.flatten(), has_quorum, unknown: unknowns.to_vec() }
        }
        (Err(error), _) | (_, Err(error)) => {
            Sentinel { address, unknown: vec![Unknown::server(&error)], ..Sentinel::default() }
        }
    }
}
