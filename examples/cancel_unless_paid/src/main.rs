//! A web shop that cancels orders which are not paid in time: axum, SQLite, and a worker.
//!
//!     cargo run --package redelay-cancel-unless-paid  # some customers, 4 seconds
//!     # Until Ctrl-C or SIGTERM:
//!     cargo run --package redelay-cancel-unless-paid -- 127.0.0.1:3000 shop.sqlite
//!     curl -X POST localhost:3000/orders; curl -X POST localhost:3000/orders/1/pay
//!
//! It needs a Redis or Valkey at REDIS_URL, or at redis://localhost.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::post;
use redelay::worker::{Backoff, Context};
use redelay::{Client, DelayedQueue, Worker, codec};
use rusqlite::{Connection, TransactionBehavior};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// How long a customer has to pay.
const TIME_TO_PAY: Duration = Duration::from_secs(2);

#[derive(Clone)]
struct Shop {
    database: Arc<Mutex<Connection>>,
    unpaid: DelayedQueue<i64>,
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let mut arguments = std::env::args().skip(1);
    let (address, file) = (arguments.next(), arguments.next());
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "redis://localhost".into());
    let client = Client::connect(&url).await?;
    let due = client.blocking_queue("example:unpaid", codec::Long);
    let unpaid = client.delayed_queue(&due);
    if address.is_none() {
        // Ids begin at 1 in each run. What a run has left must not cancel the orders of the next one.
        unpaid.clear().await?;
        due.clear().await?;
    }
    let shop = Shop { database: open(file.as_deref().unwrap_or(":memory:"))?, unpaid };
    let listener = TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:0")).await?;
    let local = listener.local_addr()?;
    let routes = Router::new().route("/orders", post(create)).route("/orders/{id}/pay", post(pay));
    let server = axum::serve(listener, routes.with_state(shop.clone()));
    let server = tokio::spawn(async move { server.await });

    let worker = Worker::new(&due).concurrency(8).backoff(Backoff::fixed(Duration::from_secs(1)));
    let worker = worker.on_failure(|failure| println!("{failure}"));
    let stock = shop.clone();
    let handler = move |order, context| cancel_unless_paid(shop.clone(), order, context);
    let stopped = match address {
        Some(_) => worker.run(handler).await?,
        // It stops when the customers have gone.
        None => worker.run_until(customers(local), handler).await?,
    };
    server.abort();
    println!("{stopped:?}; in stock: {}", stock.query("SELECT available FROM stock", None).await?);
    client.shutdown().await;
    Ok(())
}

fn open(file: &str) -> rusqlite::Result<Arc<Mutex<Connection>>> {
    let database = Connection::open(file)?;
    database.execute_batch(
        "CREATE TABLE IF NOT EXISTS stock (id INTEGER PRIMARY KEY CHECK (id = 1), available INTEGER NOT NULL);
         INSERT OR IGNORE INTO stock VALUES (1, 100);
         CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, state TEXT NOT NULL);",
    )?;
    Ok(Arc::new(Mutex::new(database)))
}

impl Shop {
    /// One transaction. SQLite blocks, so it runs on a thread where it delays no other task.
    async fn transaction<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<R> + Send + 'static,
    ) -> Result<R, BoxError> {
        let database = self.database.clone();
        let done = spawn_blocking(move || {
            let mut database = database.lock().unwrap_or_else(PoisonError::into_inner);
            let transaction = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let result = work(&transaction)?;
            transaction.commit()?;
            Ok::<R, rusqlite::Error>(result)
        });
        Ok(done.await??)
    }

    /// A statement that returns a number.
    async fn query(&self, sql: &'static str, id: Option<i64>) -> Result<i64, BoxError> {
        self.transaction(move |database| {
            database.query_row(sql, rusqlite::params_from_iter(id), |row| row.get(0))
        })
        .await
    }
}

type Answer = Result<String, (StatusCode, String)>;

fn failed(error: impl std::fmt::Display) -> (StatusCode, String) {
    (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n"))
}

/// `POST /orders`
async fn create(State(shop): State<Shop>) -> Answer {
    const RESERVE: &str = "UPDATE stock SET available = available - 1";
    const INSERT: &str = "INSERT INTO orders (state) VALUES ('open') RETURNING id";
    let order = shop.transaction(|database| {
        database.execute(RESERVE, [])?;
        database.query_row(INSERT, [], |row| row.get::<_, i64>(0))
    });
    let order = order.await.map_err(failed)?;
    // If the process dies here, the order has no check: docs/recipes.md says how a service finds such rows.
    shop.unpaid.offer(&order, TIME_TO_PAY).await.map_err(failed)?;
    Ok(format!("{order}"))
}

/// `POST /orders/{id}/pay`
async fn pay(State(shop): State<Shop>, Path(order): Path<i64>) -> Answer {
    const PAY: &str = "UPDATE orders SET state = 'paid' WHERE id = ?1 AND state = 'open'";
    match shop.transaction(move |database| database.execute(PAY, [order])).await.map_err(failed)? {
        1 => Ok(format!("order {order} is paid")),
        _ => Err((StatusCode::CONFLICT, format!("order {order} is not open"))),
    }
}

/// The handler. A message may be delivered twice, so the state of the order decides: only the transaction
/// that changes it returns the item to the stock.
async fn cancel_unless_paid(shop: Shop, order: i64, context: Context) -> Result<(), BoxError> {
    const CANCEL: &str = "UPDATE orders SET state = 'cancelled' WHERE id = ?1 AND state = 'open'";
    const RETURN: &str = "UPDATE stock SET available = available + 1";
    let cancelled = shop.transaction(move |database| {
        let is_cancelled = database.execute(CANCEL, [order])? == 1;
        if is_cancelled {
            database.execute(RETURN, [])?;
        }
        Ok(is_cancelled)
    });
    let what = if cancelled.await? { "was not paid in time and is cancelled" } else { "needs nothing" };
    println!("order {order}, attempt {}: it {what}", context.attempt());
    if order == 3 && context.attempt() == 1 {
        return Err("this attempt fails after its transaction".into());
    }
    Ok(())
}

/// Five customers, of whom two pay.
async fn customers(shop: SocketAddr) {
    for order in 1..=5 {
        println!("a customer orders: {}", send(shop, "/orders").await);
        if order % 2 == 0 {
            println!("a customer pays: {}", send(shop, &format!("/orders/{order}/pay")).await);
        }
    }
    sleep(TIME_TO_PAY).await;
    println!("a customer pays too late: {}", send(shop, "/orders/1/pay").await);
    sleep(Duration::from_secs(2)).await;
}

/// A request without a body. Returns the last line of the response.
async fn send(shop: SocketAddr, path: &str) -> String {
    let answer = async {
        let mut stream = TcpStream::connect(shop).await?;
        let request =
            format!("POST {path} HTTP/1.1\r\nHost: {shop}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut response = String::new();
        stream.read_to_string(&mut response).await?;
        Ok::<_, std::io::Error>(response.lines().last().unwrap_or_default().to_owned())
    };
    answer.await.unwrap_or_else(|error| error.to_string())
}
