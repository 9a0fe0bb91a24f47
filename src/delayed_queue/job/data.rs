//! What travels with a job, as the script of offers gets it.

use std::time::{Duration, SystemTime};

use bytes::Bytes;

use crate::wire::job::{self, DISCARDED, HOLDS, TRACEPARENT};
use crate::wire::time;

/// The most bytes of the headers of a job, with a few bytes each for lengths.
const MOST: usize = 1024;

#[derive(Clone, Debug, Default)]
pub(super) struct Data {
    /// Whether the id is taken until the job is done.
    pub(super) holds: bool,
    pub(super) expires: Option<Expiry>,
    /// Whether it is discarded if it expires, and no dead letter.
    pub(super) is_discarded: bool,
    headers: Vec<(String, String)>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Expiry {
    /// After the offer.
    After(Duration),
    At(SystemTime),
}

impl Data {
    /// Sets a header, in place of an earlier one of this name.
    pub(super) fn set_header(&mut self, name: String, value: String) {
        self.headers.retain(|(other, _)| *other != name);
        self.headers.push((name, value));
    }

    /// Sets the header of the trace that the caller is in, unless it has set that itself, or there is no
    /// room.
    pub(super) fn set_trace(&mut self, trace: Option<String>) {
        let Some(trace) = trace else { return };
        let length = |(name, value): &(String, String)| name.len() + value.len() + 3;
        let used: usize = self.headers.iter().map(length).sum();
        let is_set = self.headers.iter().any(|(name, _)| name == TRACEPARENT);
        if !is_set && used + TRACEPARENT.len() + trace.len() + 3 <= MOST {
            self.set_header(TRACEPARENT.to_owned(), trace);
        }
    }

    /// The option that says something that travels with a job, which needs an id.
    pub(super) fn needs_id(&self) -> Option<&'static str> {
        if self.holds {
            Some("until_done")
        } else if !self.headers.is_empty() {
            Some("header")
        } else if self.expires.is_some() {
            Some("expires_after or expires_at")
        } else {
            None
        }
    }

    /// Flags, what the expiry counts from, the expiry, headers: see `offer_jobs.lua`. Nothing if there is
    /// nothing to say. The error says what is wrong.
    pub(super) fn bytes(&self) -> Result<Bytes, String> {
        if self.is_discarded && self.expires.is_none() {
            return Err(
                "discard_if_expired() needs a time: call expires_after(…) or expires_at(…), too".into()
            );
        } else if self.needs_id().is_none() {
            return Ok(Bytes::new());
        }
        let (from, at) = match self.expires {
            None => (b'-', 0),
            Some(Expiry::After(after)) => (b'n', time::millis(after)?),
            // Zero says that it never does.
            Some(Expiry::At(at)) => (b'0', time::epoch_millis(at)?.max(1)),
        };
        let flags = if self.holds { HOLDS } else { 0 } | if self.is_discarded { DISCARDED } else { 0 };
        let mut bytes = vec![flags, from];
        bytes.extend(&at.to_be_bytes()[2..]);
        let begin = bytes.len();
        for (name, value) in &self.headers {
            if name.is_empty() || name.len() > 255 || !name.bytes().all(is_of_a_name) {
                return Err(format!(
                    "{name:.100?} is no name of a header: 1 to 255 letters of ASCII, digits, `-`, `_` or `.`"
                ));
            }
            job::put_header(&mut bytes, name, value);
            let length = bytes.len() - begin;
            if length > MOST {
                return Err(format!(
                    "the headers have {length} bytes, with 3 for the lengths of each, and {MOST} is the most: put the rest \
                     into the payload"
                ));
            }
        }
        Ok(bytes.into())
    }
}

fn is_of_a_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)
}
