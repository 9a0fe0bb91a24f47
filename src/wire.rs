//! The layout on the server, byte for byte that of Redisson: key names, packed entries, times. Pure: no I/O.
//! Only new ids (`id`), in entries and in the names of redelay's keys, read the clock.

pub(crate) mod claim;
pub(crate) mod entry;
pub(crate) mod id;
pub(crate) mod job;
pub(crate) mod keys;
pub(crate) mod letter;
pub(crate) mod message;
pub(crate) mod time;
