//! The layout on the server, byte for byte that of Redisson: key names, packed entries, times. Pure: no I/O. Ids of new
//! entries and names of claims are UUIDs of version 7, which read the clock.

pub(crate) mod entry;
pub(crate) mod keys;
pub(crate) mod time;
