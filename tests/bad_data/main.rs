//! Payloads, entries, messages and keys that are unusual, malformed or of another type: each works as
//! documented or is refused with a sentence, and nothing is lost.

mod foreign_entries;
mod foreign_messages;
mod hostile_replies;
mod input;
mod lost_keys;
mod malformed_entries;
mod newer_versions;
mod receivers;
mod undecodable;
mod wrong_types;
