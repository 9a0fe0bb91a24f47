//! The connections to one server on which commands are sent.

use std::sync::Arc;

use futures::future::{OptionFuture, join};
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::confirmations::Confirmations;
use super::purpose::Purpose;
use super::shared::Shared;
use super::{ConnectError, Link, OpError, Options};

/// The connection for commands, and the one on which replicas confirm writes, if they are to do that.
#[derive(Clone, Debug)]
pub(super) struct Commands {
    pub(super) link: Arc<Link>,
    pub(super) confirmations: Option<Arc<Confirmations>>,
}

impl Commands {
    /// Connects to the server, again and again until the deadline.
    pub(super) async fn open(
        options: &Options,
        shared: &Shared,
        deadline: Instant,
    ) -> Result<Self, ConnectError> {
        let link = Link::open(options, Purpose::Commands, shared, deadline).await?;
        let confirming = match options.of_confirmations() {
            Some(options) => Some(Link::open(&options, Purpose::Commands, shared, deadline).await?),
            None => None,
        };
        Ok(Self::new(link, confirming, options))
    }

    /// Connects in the background.
    pub(super) fn begin(options: &Options, shared: &Shared) -> Result<Self, OpError> {
        let begin = |options: &Options| Link::begin(options, Purpose::Commands, shared);
        let confirming = options.of_confirmations().map(|options| begin(&options)).transpose()?;
        Ok(Self::new(begin(options)?, confirming, options))
    }

    fn new(link: Arc<Link>, confirming: Option<Arc<Link>>, options: &Options) -> Self {
        let confirmations = confirming
            .zip(options.replicas)
            .map(|(link, replicas)| Confirmations::new(link, replicas, Handle::current()));
        Self { link, confirmations }
    }

    pub(super) fn is_connected(&self) -> bool {
        self.link.session().is_some()
    }

    /// Another server has replaced it.
    pub(super) fn abandon(&self) {
        self.link.abandon();
        self.confirmations.iter().for_each(|confirmations| confirmations.link().abandon());
    }

    pub(super) async fn close(&self) {
        let confirmations = OptionFuture::from(self.confirmations.as_ref().map(|other| other.link().close()));
        join(self.link.close(), confirmations).await;
    }
}
