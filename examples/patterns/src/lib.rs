//! The programs of `docs/patterns.md`, a file for each pattern. `tests/patterns` runs all of them on real
//! servers, and `tests/docs` of the repository compares them with the page.

pub mod http_callback;
pub mod in_process;
pub mod order_timeout;
pub mod priority;
pub mod reliable_list;
pub mod stop_callbacks;
pub mod timers;
pub mod to_broker;
