//! Clients, and the two queues of the target `q`.

use redelay::client::ClientBuilder;
use redelay::{BlockingQueue, Client, DelayedQueue, codec};
use redelay_fixture::{Cluster, Proxy, Server};

use crate::{MINUTE, TARGET};

/// An address that a client can connect to.
pub trait Address {
    /// Its URL.
    fn url(&self) -> String;
}

impl Address for Server {
    fn url(&self) -> String {
        Server::url(self)
    }
}

impl Address for Proxy {
    fn url(&self) -> String {
        Proxy::url(self)
    }
}

impl Address for Cluster {
    fn url(&self) -> String {
        Cluster::url(self)
    }
}

impl Address for String {
    fn url(&self) -> String {
        self.clone()
    }
}

impl Address for str {
    fn url(&self) -> String {
        self.to_owned()
    }
}

impl<A: Address + ?Sized> Address for &A {
    fn url(&self) -> String {
        (*self).url()
    }
}

/// A client and its queues `q`.
#[derive(Clone, Debug)]
pub struct Queues<T> {
    /// The client.
    pub client: Client,
    /// The ready list.
    pub ready: BlockingQueue<T>,
    /// The delayed queue.
    pub delayed: DelayedQueue<T>,
}

impl Queues<i64> {
    /// Connects, and opens queues of numbers.
    ///
    /// # Panics
    /// Panics when there is no connection.
    pub async fn of_numbers(builder: ClientBuilder) -> Self {
        let client = builder.connect().await.expect("a connection");
        let ready = client.blocking_queue(TARGET, codec::Long);
        let delayed = client.delayed_queue(&ready);
        Self { client, ready, delayed }
    }
}

impl Queues<String> {
    /// Connects, and opens queues of texts.
    ///
    /// # Panics
    /// Panics when there is no connection.
    pub async fn of_texts(builder: ClientBuilder) -> Self {
        let client = builder.connect().await.expect("a connection");
        let ready = client.blocking_queue(TARGET, codec::String);
        let delayed = client.delayed_queue(&ready);
        Self { client, ready, delayed }
    }
}

impl<T> Queues<T> {
    fn apart(self) -> (Client, BlockingQueue<T>, DelayedQueue<T>) {
        (self.client, self.ready, self.delayed)
    }
}

/// The builder of a client with this address. It may take long to connect, as on a busy machine. All else is
/// the default.
pub fn builder(address: &impl Address) -> ClientBuilder {
    Client::builder().url(address.url()).connect_timeout(10 * MINUTE)
}

/// The same for a client whose calls may take long, so that none is in doubt on a busy machine.
pub fn patient_builder(address: &impl Address) -> ClientBuilder {
    builder(address).command_timeout(MINUTE)
}

/// The builder of a patient client that transfers nothing, so that the keys stay as they were written.
pub fn still_builder(address: &impl Address) -> ClientBuilder {
    patient_builder(address).transfer(false)
}

/// A client with queues of texts.
pub async fn text_queues(address: &impl Address) -> (Client, BlockingQueue<String>, DelayedQueue<String>) {
    Queues::of_texts(patient_builder(address)).await.apart()
}

/// A client with queues of texts, which transfers nothing.
pub async fn still_text_queues(
    address: &impl Address,
) -> (Client, BlockingQueue<String>, DelayedQueue<String>) {
    Queues::of_texts(still_builder(address)).await.apart()
}

/// A client with queues of numbers.
pub async fn number_queues(address: &impl Address) -> (Client, BlockingQueue<i64>, DelayedQueue<i64>) {
    Queues::of_numbers(patient_builder(address)).await.apart()
}

/// A client with queues of numbers, which transfers nothing.
pub async fn still_number_queues(address: &impl Address) -> (Client, BlockingQueue<i64>, DelayedQueue<i64>) {
    Queues::of_numbers(still_builder(address)).await.apart()
}

/// A payload.
#[must_use]
pub fn text(value: &str) -> String {
    value.to_owned()
}
