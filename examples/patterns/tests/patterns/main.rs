//! The programs of `docs/patterns.md`, on real servers.

mod http_callback;
mod in_process;
mod nats;
mod order_timeout;
mod priority;
mod reliable_list;
mod timers;
mod to_broker;
