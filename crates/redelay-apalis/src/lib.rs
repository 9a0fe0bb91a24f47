//! A backend for workers of [apalis](apalis_core): tasks come from a queue of [redelay]. `README.md` has an
//! example, and says what each result of a handler does to the message.
#![forbid(unsafe_code)]

mod backend;
mod settle;
mod sink;

pub use backend::RedelayBackend;
pub use settle::{Settle, SettleService};

// Its example is compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
