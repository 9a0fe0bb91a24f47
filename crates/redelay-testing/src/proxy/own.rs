//! Faults and counts that only redelay's own tests use.

use super::Proxy;
use super::rewrite::Rule;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

impl Proxy {
    /// The number of connections that ended with an unanswered blocking pop (`BLPOP` or `BRPOP`): the pop was
    /// sent, and its reply was not forwarded. A payload that it popped is lost.
    #[must_use]
    pub fn dead_pops(&self) -> usize {
        self.count(|counts| &counts.dead_pops)
    }

    /// The number of connections that their clients have closed behind the reply to a blocking pop, without
    /// another command. A client may have read such a reply and not have seen it, when it closed the
    /// connection for another reason.
    #[must_use]
    pub fn left_pops(&self) -> usize {
        self.count(|counts| &counts.left_pops)
    }

    /// The number of connections that [`forget_idle`](Self::forget_idle) has forgotten.
    #[must_use]
    pub fn forgotten(&self) -> usize {
        self.count(|counts| &counts.forgotten)
    }

    /// The number of connections whose replies [`swallow_behind`](Self::swallow_behind) has kept.
    #[must_use]
    pub fn swallowing(&self) -> usize {
        self.count(|counts| &counts.swallowing)
    }

    /// The number of pieces in which commands have come from clients: at least one for each command or
    /// pipeline.
    #[must_use]
    pub fn commands(&self) -> usize {
        self.count(|counts| &counts.commands)
    }

    /// Separates the open connections from the server: nothing passes on them in either direction, not even
    /// their end, until [`release`](Self::release). New connections work. Neither side can detect it: this is
    /// how one path through the network fails while another one works.
    pub fn strand(&self) {
        let counts = self.counts.clone();
        self.change(move |faults| faults.stranded = counts.accepted.load(Ordering::SeqCst));
    }

    /// [Strands](Self::strand) the open connections, and ends them for their clients but not for the server,
    /// like a router that lost its state.
    pub fn hang_up(&self) {
        self.strand();
        self.change(|faults| faults.hung_up = faults.stranded);
    }

    /// Ends [`strand`](Self::strand). Everything that was held is forwarded, including commands of clients
    /// that have ended.
    pub fn release(&self) {
        self.change(|faults| faults.stranded = 0);
    }

    /// A connection on which nothing has passed for longer than this is forgotten, as balancers do: what
    /// comes next, from either side, goes nowhere, and neither side learns of it. `None` ends it for the
    /// connections that are not forgotten.
    pub fn forget_idle(&self, after: Option<Duration>) {
        self.change(move |faults| faults.forget_idle = after);
    }

    /// A connection on which the client has sent more than this number of bytes since the last reply gets no
    /// reply any more; its commands reach the server. `None` ends it for the other connections.
    pub fn swallow_behind(&self, bytes: Option<usize>) {
        self.change(move |faults| faults.swallow_behind = bytes);
    }

    /// Forwards no more than this number of bytes a second, in each direction of each connection: what
    /// arrives waits for what arrived before it. 0 ends it, for what arrives from then on.
    pub fn throttle(&self, bytes_per_second: usize) {
        self.change(move |faults| faults.throttle = bytes_per_second);
    }

    /// Replaces bytes in replies, for example `redis_version:7.0.15` by `redis_version:5.0.15`, even if they
    /// arrive in pieces. Applies to what arrives from now on. Earlier rewrites stay, and the first one that
    /// matches is used.
    ///
    /// # Panics
    /// Panics if `from` is empty, if `to` has another length, and if `from` has a line feed before its end: a
    /// reply that ends there would have to wait for the next one.
    pub fn rewrite(&self, from: impl Into<Vec<u8>>, to: impl Into<Vec<u8>>) {
        let rule = Rule::new(from.into(), to.into());
        self.change(move |faults| faults.rules.push(rule));
    }

    /// The same for commands: the server gets another one, `INFX` for `INFO` for example, and says that it
    /// does not know it.
    ///
    /// # Panics
    /// As [`rewrite`](Self::rewrite).
    pub fn rewrite_commands(&self, from: impl Into<Vec<u8>>, to: impl Into<Vec<u8>>) {
        let rule = Rule::new(from.into(), to.into());
        self.change(move |faults| faults.command_rules.push(rule));
    }

    /// Ends all rewrites.
    pub fn rewrite_nothing(&self) {
        self.change(|faults| {
            faults.rules.clear();
            faults.command_rules.clear();
        });
    }

    /// Each connection, also a later one, forwards this number of further reply bytes and is closed before
    /// the next byte, so that replies break off in the middle. [`truncate_nothing`](Self::truncate_nothing)
    /// ends it.
    pub fn truncate(&self, bytes: usize) {
        self.change(move |faults| {
            faults.truncations += 1;
            faults.truncate = Some(bytes);
        });
    }

    /// Ends [`truncate`](Self::truncate).
    pub fn truncate_nothing(&self) {
        self.change(|faults| faults.truncate = None);
    }

    /// Sends these bytes to the clients of all open connections, as if the server had sent them, and in front
    /// of the replies that are held: an extra reply, or garbage. Returns before they have arrived.
    pub fn inject(&self, bytes: impl Into<Vec<u8>>) {
        let bytes = Arc::new(bytes.into());
        self.change(move |faults| {
            faults.injections += 1;
            faults.injected = bytes;
        });
    }

    /// Forwards new connections to another server from now on, as after a failover. Open connections do not
    /// change.
    pub fn switch_to(&self, server_port: u16) {
        self.change(move |faults| faults.server_port = server_port);
    }
}
