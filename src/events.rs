//! What is told to a subscriber of the `tracing` crate (feature `tracing`), target `redelay`. Once per change of
//! state, so that a failing server does not fill the log. Without the feature nothing is compiled in.

use crate::conn::OpError;
use crate::keys::Keys;

/// A transfer failed, and will be tried again.
pub(crate) fn transfer_failing(keys: &Keys, error: &OpError) {
    #[cfg(feature = "tracing")]
    tracing::warn!(target: "redelay", queue = %name(keys), %error, "transfer failing, trying again");
    #[cfg(not(feature = "tracing"))]
    let _ = (keys, error);
}

/// The first transfer that succeeded after failing ones.
pub(crate) fn transfer_recovered(keys: &Keys) {
    #[cfg(feature = "tracing")]
    tracing::info!(target: "redelay", queue = %name(keys), "transfer recovered");
    #[cfg(not(feature = "tracing"))]
    let _ = keys;
}

/// Entries that nobody can read were set aside.
pub(crate) fn quarantined(keys: &Keys, entries: i64) {
    #[cfg(feature = "tracing")]
    tracing::warn!(target: "redelay", queue = %name(keys), entries, "malformed entries quarantined");
    #[cfg(not(feature = "tracing"))]
    let _ = (keys, entries);
}

/// A first try to connect failed; there will be more.
pub(crate) fn connecting_failing(server: &str, why: &str) {
    #[cfg(feature = "tracing")]
    tracing::warn!(target: "redelay", %server, %why, "no connection yet, trying again");
    #[cfg(not(feature = "tracing"))]
    let _ = (server, why);
}

/// The first blocking pop that succeeded after failing ones.
pub(crate) fn pops_recovered() {
    #[cfg(feature = "tracing")]
    tracing::info!(target: "redelay", "blocking pops recovered");
}

/// Blocking pops fail, and will be tried again.
pub(crate) fn pops_failing(error: &OpError) {
    #[cfg(feature = "tracing")]
    tracing::warn!(target: "redelay", %error, "blocking pops failing, trying again");
    #[cfg(not(feature = "tracing"))]
    let _ = error;
}

/// The server does not let us listen to the announcements of some queue. Its entries are found by sweeps only.
pub(crate) fn announcements_failing(error: &OpError) {
    #[cfg(feature = "tracing")]
    tracing::warn!(target: "redelay", %error, "announcements failing, trying again");
    #[cfg(not(feature = "tracing"))]
    let _ = error;
}

/// The announcements of all queues are listened to, after some were not.
pub(crate) fn announcements_back() {
    #[cfg(feature = "tracing")]
    tracing::info!(target: "redelay", "announcements back");
}

/// A payload whose taker is gone could not be put back yet.
pub(crate) fn give_back_failing(keys: &Keys, error: &OpError) {
    #[cfg(feature = "tracing")]
    tracing::warn!(target: "redelay", queue = %name(keys), %error, "giving a payload back failed, trying again");
    #[cfg(not(feature = "tracing"))]
    let _ = (keys, error);
}

#[cfg(feature = "tracing")]
fn name(keys: &Keys) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(keys.target())
}
