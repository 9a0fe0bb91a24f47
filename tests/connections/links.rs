//! Connections that are given up, refused or demoted. No payload is lost or duplicated, and no process needs
//! a restart.

mod announcements;
mod foreign_replies;
mod reconnections;
mod stranded;

use redelay::Client;
use redelay::client::ClientBuilder;
use redelay_fixture::{Proxy, Server, Version};
use redelay_support::{ms, part};

type Queues = redelay_support::Queues<i64>;

async fn connected(builder: ClientBuilder) -> Queues {
    Queues::of_numbers(builder).await
}

/// A client that transfers nothing has one connection, for commands, until a taker comes.
async fn behind(proxy: &Proxy) -> Queues {
    connected(
        Client::builder().url(proxy.url()).client_name("behind").transfer(false).command_timeout(ms(3000)),
    )
    .await
}

/// All installed servers that are supported. If each server has its own run, only the server of this run.
fn each_version() -> impl Iterator<Item = Server> {
    let all = [Version::Redis62, Version::Redis70, Version::Valkey91].into_iter();
    let versions: Vec<_> = if part().is_one_of_several() {
        vec![None]
    } else {
        all.filter(|version| version.is_installed()).map(Some).collect()
    };
    versions.into_iter().map(|version| {
        // Lets a replica synchronise at once, without waiting for others.
        let builder = Server::builder().config("repl-diskless-sync-delay 0");
        match version {
            Some(version) => builder.version(version).start(),
            None => builder.start(),
        }
    })
}
