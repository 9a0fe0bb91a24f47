//! Without the feature `tracing`: the functions of `enabled`, doing nothing.

use std::fmt::{Debug, Display};

use crate::wire::keys::Keys;
use crate::wire::message::MessageId;

pub(crate) fn transfer_failing(_: &Keys, _: &dyn Display) {}
pub(crate) fn transfer_recovered(_: &Keys) {}
pub(crate) fn transfer_stalled(_: &Keys) {}
pub(crate) fn check_failing(_: &str, _: &dyn Display) {}
pub(crate) fn quarantined(_: &Keys, _: i64) {}
pub(crate) fn schedule_failing(_: &Keys, _: &str, _: &str) {}
pub(crate) fn permissions_missing(_: &Keys, _: &str) {}
pub(crate) fn connecting_failing(_: &str, _: &str) {}
pub(crate) fn connected(_: &str, _: &str) {}
pub(crate) fn evicts(_: &str, _: &str) {}
pub(crate) fn has_no_aof(_: &str) {}
pub(crate) fn connection_refused(_: &str, _: &str, _: &impl std::fmt::Display, _: &impl std::fmt::Display) {}
pub(crate) fn pops_recovered() {}
pub(crate) fn pops_failing(_: &dyn Display) {}
pub(crate) fn receives_failing(_: &Keys, _: &dyn Display) {}
pub(crate) fn receives_recovered(_: &Keys) {}
pub(crate) fn announcements_failing(_: &dyn Display) {}
pub(crate) fn announcements_back() {}
pub(crate) fn return_to_list_failing(_: &Keys, _: &dyn Display) {}
pub(crate) fn payloads_lost(_: &Keys, _: usize) {}
pub(crate) fn connection_lost(_: &str, _: &str, _: &impl std::fmt::Display, _: &impl std::fmt::Display) {}
pub(crate) fn master_changed(_: &str, _: &impl std::fmt::Display, _: &impl std::fmt::Display) {}
pub(crate) fn masters_changed(_: &str, _: &str) {}
pub(crate) fn connection_back(_: &str, _: &str, _: &impl std::fmt::Display) {}
pub(crate) fn runtime_blocked(_: &Keys, _: std::time::Duration) {}
pub(crate) fn receiver_far(_: &Keys, _: std::time::Duration) {}
pub(crate) fn leases_ended(_: &Keys, _: u64) {}
pub(crate) fn dead_letters(_: &Keys, _: u64) {}
pub(crate) fn jobs_expired(_: &Keys, _: u64) {}
pub(crate) fn dead_letters_removed(_: &Keys, _: u64) {}
pub(crate) fn keys_disagreed(_: &Keys, _: &str, _: u64, _: u64) {}
pub(crate) fn foreign_fields(_: &Keys, _: &str, _: u64) {}
pub(crate) fn abandoned_released(_: &Keys, _: u64) {}
pub(crate) fn forward_failing(_: &Keys, _: &dyn Display) {}

#[derive(Clone, Debug)]
pub(crate) struct Span;

impl Span {
    pub(crate) fn transfer(_: &Keys) -> Self {
        Self
    }

    pub(crate) fn transferred(&self, _: Result<(i64, i64, Option<f64>), &dyn Display>) {}

    pub(crate) fn offer(_: &Keys, _: usize) -> Self {
        Self
    }

    pub(crate) fn receive(_: &Keys) -> Self {
        Self
    }

    pub(crate) fn received(&self, _: usize) {}

    pub(crate) fn process(_: &Keys, _: MessageId, _: u32, _: usize) -> Self {
        Self
    }

    pub(crate) fn caused_by(&self, _: &str) {}

    pub(crate) fn processed(&self, _: &'static str) {}

    pub(crate) fn settle(&self, _: &Keys, _: MessageId, _: &'static str) -> Self {
        Self
    }

    pub(crate) fn failed(&self, _: &dyn Debug) {}

    pub(crate) fn take(_: &[Keys]) -> Self {
        Self
    }

    pub(crate) fn within<R>(&self, work: impl FnOnce() -> R) -> R {
        work()
    }
}
