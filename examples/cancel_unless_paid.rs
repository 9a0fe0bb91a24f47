//! Cancel an order unless it is paid in time: offer its id, keep the text of the ticket, cancel the ticket on payment.
//!
//!     cargo run --example cancel_unless_paid
//!
//! It needs a Redis or Valkey at REDIS_URL, or at redis://localhost.

use std::collections::HashMap;
use std::error::Error;
use std::time::Duration;

use redelay::{Client, DelayedQueue, Ticket, codec};

/// How long a customer has to pay.
const TIME_TO_PAY: Duration = Duration::from_secs(2);

/// A row of the table of orders. In a service this table is in a database.
#[derive(Debug)]
struct Order {
    state: State,
    /// The text of the ticket.
    ticket: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Open,
    Paid,
    Cancelled,
}

type Orders = HashMap<i64, Order>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "redis://localhost".into());
    let client = Client::connect(&url).await?;
    let due = client.blocking_queue::<i64>("example:unpaid", codec::Long);
    let unpaid = client.delayed_queue(&due);

    let mut orders = Orders::new();
    for id in [17, 18, 19] {
        create(&mut orders, &unpaid, id).await?;
    }
    pay(&mut orders, &unpaid, 18).await?;

    // The worker. In a service it runs in a process of its own, with `take` in a loop.
    while let Some(id) = due.poll_timeout(2 * TIME_TO_PAY).await? {
        cancel_unless_paid(&mut orders, id);
    }
    client.shutdown().await;
    Ok(())
}

async fn create(orders: &mut Orders, unpaid: &DelayedQueue<i64>, id: i64) -> Result<(), Box<dyn Error>> {
    orders.insert(id, Order { state: State::Open, ticket: None });
    let ticket = unpaid.offer(&id, TIME_TO_PAY).await?;
    // The text fits into a column or a URL. It contains the payload, which is only an id here.
    let text = ticket.to_string();
    println!("order {id} is open; its ticket is {text}");
    orders.entry(id).and_modify(|order| order.ticket = Some(text));
    Ok(())
}

async fn pay(orders: &mut Orders, unpaid: &DelayedQueue<i64>, id: i64) -> Result<(), Box<dyn Error>> {
    let order = orders.get_mut(&id).ok_or("no such order")?;
    if order.state != State::Open {
        return Err("the order is paid or cancelled".into());
    }
    order.state = State::Paid; // From here on the order is paid, even if the next lines fail.
    if let Some(text) = &order.ticket {
        let ticket: Ticket = text.parse()?;
        let in_time = unpaid.cancel(&ticket).await?;
        println!("order {id} is paid; its entry was removed before it was due: {in_time}");
    }
    Ok(())
}

/// Handles an id that became due. The state of the order decides, not the queue: a payment may come at the last moment,
/// and an id may come twice.
fn cancel_unless_paid(orders: &mut Orders, id: i64) {
    match orders.get_mut(&id) {
        Some(order) if order.state == State::Open => {
            order.state = State::Cancelled;
            println!("order {id} was not paid in time and is cancelled");
        }
        order => println!("order {id} needs nothing: {order:?}"),
    }
}
