//! The connections to one server on which commands are sent.

use std::sync::Arc;

use futures::future::{OptionFuture, join};
use tokio::runtime::Handle;

use super::confirmations::Confirmations;
use super::purpose::Purpose;
use super::shared::Shared;
use super::slot::Slot;
use super::{ConnectError, Link, Options};

/// The connection for commands, and the one on which replicas confirm writes, if they are to do that.
#[derive(Clone, Debug)]
pub(super) struct Commands {
    pub(super) link: Arc<Link>,
    pub(super) confirmations: Option<Arc<Confirmations>>,
}

impl Commands {
    /// Connects to the server, again and again until the connect timeout has passed.
    pub(super) async fn open(options: &Options, shared: &Shared) -> Result<Self, ConnectError> {
        let link = Link::open(options, Purpose::Commands, shared).await?;
        let confirming = match options.replicas {
            Some(_) => {
                let lead = shared.lead(Slot::ANY);
                Some(Link::open_once(options, Purpose::Commands, shared, lead).await?)
            }
            None => None,
        };
        Ok(Self::new(link, confirming, options))
    }

    pub(super) fn new(link: Arc<Link>, confirming: Option<Arc<Link>>, options: &Options) -> Self {
        let confirmations = confirming.zip(options.replicas).map(|(link, replicas)| {
            Confirmations::new(link, replicas, options.command_timeout, Handle::current())
        });
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
