//! With the feature `tracing`.

use std::fmt::{Debug, Display};

use tracing::field::{Empty, debug, display};
use tracing::{info, warn};

use super::name;
use crate::wire::keys::Keys;
use crate::wire::message::MessageId;

/// A transfer failed and will be retried.
pub(crate) fn transfer_failing(keys: &Keys, error: &dyn Display) {
    warn!(name: "redelay.transfer.failing", target: "redelay", parent: None, queue = %name(keys), %error, "transfer failing, retrying");
}

/// The first transfer that succeeded after failed ones.
pub(crate) fn transfer_recovered(keys: &Keys) {
    info!(name: "redelay.transfer.recovered", target: "redelay", parent: None, queue = %name(keys), "transfer recovered");
}

/// Malformed entries were quarantined, for the first time in this queue.
pub(crate) fn quarantined(keys: &Keys, entries: i64) {
    warn!(
        name: "redelay.quarantined", target: "redelay", parent: None, queue = %name(keys), entries,
        "malformed entries quarantined; further entries are counted, not logged"
    );
}

/// This client cannot store what follows a run of a schedule; or it can read none of them, and the name is
/// empty.
pub(crate) fn schedule_failing(keys: &Keys, schedule: &str, error: &str) {
    let queue = name(keys);
    if schedule.is_empty() {
        warn!(name: "redelay.schedule.failing", target: "redelay", parent: None, %queue, schedule, error, "schedules cannot be read");
    } else {
        warn!(name: "redelay.schedule.failing", target: "redelay", parent: None, %queue, schedule, error, "a schedule does not run");
    }
}

/// The user lacks permissions for some calls. Looked at once, with the first queue of a client.
pub(crate) fn permissions_missing(keys: &Keys, missing: &str) {
    warn!(name: "redelay.permissions.missing", target: "redelay", parent: None, queue = %name(keys), missing, "permissions are missing");
}

/// The first attempt to connect failed and will be retried.
pub(crate) fn connecting_failing(server: &str, error: &str) {
    warn!(name: "redelay.connection.failing", target: "redelay", parent: None, server, error, "no connection yet, retrying");
}

/// A client has connected.
pub(crate) fn connected(server: &str, version: &str) {
    info!(name: "redelay.connected", target: "redelay", parent: None, server, version, "connected");
}

/// The server deletes keys when its memory is full.
pub(crate) fn evicts(server: &str, policy: &str) {
    warn!(
        name: "redelay.eviction", target: "redelay", parent: None, server, policy,
        "the server deletes keys, queues included, when its memory is full; set maxmemory-policy to noeviction"
    );
}

/// The server has no append-only file. Many run without one on purpose.
pub(crate) fn has_no_aof(server: &str) {
    info!(
        name: "redelay.aof.off", target: "redelay", parent: None, server,
        "the server has no append-only file: after a restart, it has what its last snapshot has"
    );
}

/// The first blocking pop that succeeded after failed ones.
pub(crate) fn pops_recovered() {
    info!(name: "redelay.pops.recovered", target: "redelay", parent: None, "blocking pops recovered");
}

/// Blocking pops fail and will be retried.
pub(crate) fn pops_failing(error: &dyn Display) {
    warn!(name: "redelay.pops.failing", target: "redelay", parent: None, %error, "blocking pops failing, retrying");
}

/// The server refuses what a receiver asks for. It will be retried.
pub(crate) fn receives_failing(keys: &Keys, error: &dyn Display) {
    warn!(name: "redelay.receives.failing", target: "redelay", parent: None, queue = %name(keys), %error, "receives failing, retrying");
}

/// The first receive that the server accepted after refused ones.
pub(crate) fn receives_recovered(keys: &Keys) {
    info!(name: "redelay.receives.recovered", target: "redelay", parent: None, queue = %name(keys), "receives recovered");
}

/// An entry was overdue, and this client did nothing although the server answered.
pub(crate) fn transfer_stalled(keys: &Keys) {
    warn!(
        name: "redelay.transfer.stalled", target: "redelay", parent: None, queue = %name(keys),
        "entries were overdue and no client had moved them, moving them now"
    );
}

/// The server refused the check for overdue entries.
pub(crate) fn check_failing(server: &str, error: &dyn Display) {
    warn!(
        name: "redelay.check.failing", target: "redelay", parent: None, server, %error,
        "checks for overdue entries failing, retrying"
    );
}

/// The server refused a subscription to a queue's announcements. Only sweeps find entries of that queue.
pub(crate) fn announcements_failing(error: &dyn Display) {
    warn!(name: "redelay.announcements.failing", target: "redelay", parent: None, %error, "announcements failing, retrying");
}

/// All queues are subscribed to their announcements, after some were not.
pub(crate) fn announcements_back() {
    info!(name: "redelay.announcements.recovered", target: "redelay", parent: None, "announcements recovered");
}

/// A payload that no taker read could not be returned to its list yet.
pub(crate) fn return_to_list_failing(keys: &Keys, error: &dyn Display) {
    warn!(
        name: "redelay.return_to_list.failing", target: "redelay", parent: None, queue = %name(keys), %error,
        "returning an unread payload failed, retrying"
    );
}

/// Payloads that no taker read are not back in their queue, and the client has ended.
pub(crate) fn payloads_lost(keys: &Keys, payloads: usize) {
    warn!(
        name: "redelay.payloads.lost", target: "redelay", parent: None, queue = %name(keys), payloads,
        "the client ended before unread payloads were back; they are lost, unless the server executes the return or has a copy"
    );
}

/// A connection was lost and is being replaced. `queue` is empty if it is for several queues.
pub(crate) fn connection_lost(connection: &str, queue: &str, server: &impl Display, error: &impl Display) {
    warn!(
        name: "redelay.connection.lost", target: "redelay", parent: None, connection, queue, %server, %error,
        "connection lost, reconnecting"
    );
}

/// There is another reason why a lost connection cannot be replaced, and no retry may change it.
pub(crate) fn connection_refused(connection: &str, queue: &str, server: &impl Display, error: &impl Display) {
    warn!(
        name: "redelay.connection.refused", target: "redelay", parent: None, connection, queue, %server, %error,
        "cannot reconnect, retrying"
    );
}

/// A lost connection was replaced.
pub(crate) fn connection_back(connection: &str, queue: &str, server: &impl Display) {
    info!(
        name: "redelay.connection.recovered", target: "redelay", parent: None, connection, queue, %server,
        "connection recovered"
    );
}

/// The sentinels name another master.
pub(crate) fn master_changed(group: &str, old: &impl std::fmt::Display, new: &impl std::fmt::Display) {
    warn!(
        name: "redelay.master.changed", target: "redelay", parent: None, master = group, from = %old, to = %new,
        "the sentinels name another master"
    );
}

/// Other servers of a cluster serve its slots.
pub(crate) fn masters_changed(gone: &str, masters: &str) {
    warn!(
        name: "redelay.cluster.changed", target: "redelay", parent: None, gone, masters,
        "the masters of the cluster have changed"
    );
}

/// A timer was this late, so leases were not extended in time.
pub(crate) fn runtime_blocked(keys: &Keys, late: std::time::Duration) {
    warn!(
        name: "redelay.runtime.blocked", target: "redelay", parent: None, queue = %name(keys), late_ms = late.as_millis() as u64,
        "the runtime was blocked, leases may have ended; use spawn_blocking for work that blocks"
    );
}

/// Several calls of a receiver in a row took longer than its lease allows.
pub(crate) fn receiver_far(keys: &Keys, round_trip: std::time::Duration) {
    warn!(
        name: "redelay.receiver.far", target: "redelay", parent: None, queue = %name(keys),
        round_trip_ms = round_trip.as_millis() as u64, "round trips take too long for this lease; use a longer one"
    );
}

/// Leases ended without being settled or extended. Their messages are delivered again, or are dead letters.
pub(crate) fn leases_ended(keys: &Keys, messages: u64) {
    warn!(name: "redelay.leases.ended", target: "redelay", parent: None, queue = %name(keys), messages, "leases ended, redelivering");
}

/// Messages became dead letters.
pub(crate) fn dead_letters(keys: &Keys, messages: u64) {
    warn!(name: "redelay.dead_letters", target: "redelay", parent: None, queue = %name(keys), messages, "messages became dead letters");
}

/// Jobs expired before their handling began. They are gone, or dead letters.
pub(crate) fn jobs_expired(keys: &Keys, jobs: u64) {
    warn!(name: "redelay.jobs.expired", target: "redelay", parent: None, queue = %name(keys), jobs, "jobs expired");
}

/// Dead letters were removed because there were more than the receiver keeps, or they were older.
pub(crate) fn dead_letters_removed(keys: &Keys, messages: u64) {
    info!(name: "redelay.dead_letters.removed", target: "redelay", parent: None, queue = %name(keys), messages, "dead letters removed");
}

/// Keys that belong together did not agree. What had no content any more is gone, and what could be listed
/// again is.
pub(crate) fn keys_disagreed(keys: &Keys, what: &str, gone: u64, restored: u64) {
    warn!(
        name: "redelay.keys.disagreed", target: "redelay", parent: None, queue = %name(keys), what, gone, restored,
        "keys that belong together did not agree: one of them, or a part of it, was deleted"
    );
}

/// Another program, or a newer version of this one, has written fields into a key of the queue. They stay,
/// and this client does not use them.
pub(crate) fn foreign_fields(keys: &Keys, what: &str, fields: u64) {
    warn!(
        name: "redelay.keys.foreign", target: "redelay", parent: None, queue = %name(keys), what, fields,
        "a key of the queue has fields that this version of redelay does not know; they are left alone"
    );
}

/// Dead letters could not be sent to another queue yet.
pub(crate) fn forward_failing(keys: &Keys, error: &dyn Display) {
    warn!(
        name: "redelay.forward.failing", target: "redelay", parent: None, queue = %name(keys), %error,
        "sending dead letters on failed, retrying"
    );
}

/// No receiver has given a sign of life for long, so what they left was given back to the target.
pub(crate) fn abandoned_released(keys: &Keys, messages: u64) {
    warn!(
        name: "redelay.abandoned.released", target: "redelay", parent: None, queue = %name(keys), messages,
        "a queue has no receivers any more; what they left is ready again"
    );
}

/// A period of time. It costs almost nothing while no subscriber is interested.
#[derive(Clone, Debug)]
pub(crate) struct Span(tracing::Span);

impl Span {
    /// One transfer call.
    pub(crate) fn transfer(keys: &Keys) -> Self {
        Self(tracing::debug_span!(
            target: "redelay",
            "redelay.transfer",
            queue = %name(keys),
            transferred = Empty,
            quarantined = Empty,
            next_due_in_ms = Empty,
            error = Empty,
        ))
    }

    /// The result of a transfer call: transferred, quarantined, and the time from now to the head in ms by
    /// the server's clock.
    pub(crate) fn transferred(&self, result: Result<(i64, i64, Option<f64>), &dyn Display>) {
        match result {
            Ok((transferred, quarantined, next)) => {
                self.0.record("transferred", transferred).record("quarantined", quarantined);
                if let Some(next) = next {
                    self.0.record("next_due_in_ms", next);
                }
            }
            Err(error) => drop(self.0.record("error", display(error))),
        }
    }

    /// Storing entries in a delayed queue.
    pub(crate) fn offer(keys: &Keys, entries: usize) -> Self {
        Self(tracing::debug_span!(
            target: "redelay",
            "redelay.offer",
            otel.kind = "producer",
            messaging.system = "redis",
            messaging.operation.r#type = "send",
            messaging.destination.name = %name(keys),
            messaging.batch.message_count = entries,
        ))
    }

    /// Waiting for a payload of one or more queues, named after the first.
    pub(crate) fn take(lists: &[Keys]) -> Self {
        Self(tracing::trace_span!(
            target: "redelay",
            "redelay.take",
            queue = lists.first().map(name).as_deref().unwrap_or_default(),
            queues = lists.len(),
        ))
    }

    /// Waiting for messages.
    pub(crate) fn receive(keys: &Keys) -> Self {
        Self(tracing::trace_span!(
            target: "redelay",
            "redelay.receive",
            otel.kind = "client",
            messaging.system = "redis",
            messaging.operation.r#type = "receive",
            messaging.destination.name = %name(keys),
            messaging.batch.message_count = Empty,
        ))
    }

    pub(crate) fn received(&self, messages: usize) {
        self.0.record("messaging.batch.message_count", messages);
    }

    /// A delivery, from its arrival until it is settled.
    pub(crate) fn process(keys: &Keys, id: MessageId, attempt: u32, payload: usize) -> Self {
        Self(tracing::info_span!(
            target: "redelay",
            "redelay.process",
            otel.kind = "consumer",
            messaging.system = "redis",
            messaging.operation.r#type = "process",
            messaging.destination.name = %name(keys),
            messaging.message.id = %id,
            messaging.message.body.size = payload,
            attempt,
            traceparent = Empty,
            outcome = Empty,
        ))
    }

    /// The trace that travels with the job: a field, and a link.
    pub(crate) fn caused_by(&self, traceparent: &str) {
        self.0.record("traceparent", traceparent);
        #[cfg(feature = "tracing-opentelemetry-0-34")]
        crate::telemetry::trace_context::link(&self.0, traceparent);
    }

    /// What became of the delivery.
    pub(crate) fn processed(&self, outcome: &'static str) {
        self.0.record("outcome", outcome);
    }

    /// Settling a delivery, inside the span of that delivery.
    pub(crate) fn settle(&self, keys: &Keys, id: MessageId, verb: &'static str) -> Self {
        Self(tracing::debug_span!(
            target: "redelay",
            parent: &self.0,
            "redelay.settle",
            otel.kind = "client",
            messaging.system = "redis",
            messaging.operation.r#type = "settle",
            messaging.operation.name = verb,
            messaging.destination.name = %name(keys),
            messaging.message.id = %id,
            error.r#type = Empty,
        ))
    }

    /// It could not be settled.
    pub(crate) fn failed(&self, kind: &dyn Debug) {
        self.0.record("error.type", debug(kind));
    }

    /// Runs code inside the span.
    pub(crate) fn within<R>(&self, work: impl FnOnce() -> R) -> R {
        self.0.in_scope(work)
    }
}
