//! What receivers and workers did with messages, and whether that agrees with what is left on the server.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use redelay::ErrorKind;
use redelay::receiver::MessageId;
use redelay_fixture::Server;
use redelay_support::{DEAD, DEAD_MESSAGES, INBOX, LEASES, MESSAGES, RECEIPTS, RETRIES};

use crate::consumers::Consumer;
use crate::ledger::{Ledger, Price, number};

/// Each of them must have happened in a run of many plans.
pub(crate) const DEEDS: [&str; 43] = [
    "payloads offered",
    "calls that offered several payloads",
    "payloads offered that are cancelled then",
    "payloads offered by calls that may be dropped",
    "payloads taken",
    "payloads polled",
    "payloads polled with a timeout",
    "payloads polled from several lists",
    "payloads drained",
    "payloads streamed",
    "payloads taken by calls that may be dropped",
    "payloads polled before they were due",
    "messages received",
    "messages received without waiting",
    "messages received with a timeout",
    "messages received with others",
    "messages streamed",
    "messages received by calls that may be dropped",
    "messages received by workers",
    "entries moved by clients that do nothing else",
    "messages acknowledged by hand",
    "messages retried by hand",
    "messages snoozed by hand",
    "messages released by hand",
    "messages rejected by hand",
    "leases extended by hand",
    "deliveries dropped",
    "settlements dropped",
    "receives dropped",
    "deliveries held beyond a lease that is extended",
    "deliveries held beyond a lease that is not extended",
    "messages handled",
    "handlers that failed",
    "handlers that panicked",
    "handlers that timed out",
    "handlers that ran for longer than a lease",
    "handlers that snoozed",
    "handlers that rejected",
    "messages that wait for an hour",
    "leases lost",
    "messages dead after all attempts",
    "messages delivered again",
    "payloads taken by another program",
];

/// How a delivery ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Acknowledged,
    /// Retried, dropped, panicked or timed out.
    Failed,
    /// Snoozed or released.
    Postponed,
    Rejected,
}

/// What the server said to that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// Nobody waited for it.
    Unheard,
    Done,
    LeaseLost,
    /// The outcome is unknown, or the server refused it.
    Unclear,
    /// The client had been shut down.
    Closed,
}

#[derive(Clone, Debug)]
struct Delivered {
    number: i64,
    id: MessageId,
    attempt: u32,
    lease: Duration,
    extends: bool,
    /// Its place among all events.
    received: usize,
    at: Instant,
    /// When it was settled.
    ended: Option<(usize, Instant, End)>,
    answered: usize,
    answer: Answer,
}

impl Delivered {
    fn ended_as(&self, end: End) -> bool {
        self.ended.is_some_and(|(_, _, is)| is == end)
    }

    /// Whether the lease may have ended by itself before that.
    fn may_be_late(&self) -> bool {
        let held = self.ended.map_or(Duration::MAX, |(_, ended, _)| ended.saturating_duration_since(self.at));
        !self.extends && held >= self.lease / 2
    }

    fn is_done(&self, end: End) -> bool {
        self.ended_as(end) && self.answer == Answer::Done
    }
}

/// A message that is left on the server: it waits, or is dead.
#[derive(Clone, Debug)]
struct Left {
    number: i64,
    id: MessageId,
    delivery: u32,
    failed: u32,
    lost: u32,
    /// Why it is dead; empty if it is not.
    reason: String,
}

/// All deliveries of a run, and what is left in the end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deliveries {
    all: Vec<Delivered>,
    left: Vec<Left>,
    events: usize,
    deeds: BTreeMap<&'static str, usize>,
    /// Messages whose leases somebody has deleted.
    pub(crate) unleased: BTreeSet<MessageId>,
    /// The number of events when somebody had last deleted the receipts of receivers.
    without_receipts: usize,
}

impl Deliveries {
    pub(crate) fn did(&mut self, deed: &'static str) {
        assert!(DEEDS.contains(&deed), "{deed} is not in the list");
        *self.deeds.entry(deed).or_default() += 1;
    }

    /// Clients that do nothing else have moved this number of entries.
    pub(crate) fn moved_alone(&mut self, entries: usize) {
        self.deeds.insert("entries moved by clients that do nothing else", entries);
    }

    pub(crate) fn ends_if_open(&mut self, delivery: usize, end: End) {
        self.events += 1;
        self.all[delivery].ended.get_or_insert((self.events, Instant::now(), end));
    }

    /// How often each of [`DEEDS`] was done.
    pub(crate) fn deeds(&self) -> BTreeMap<&'static str, usize> {
        let mut deeds = self.deeds.clone();
        let count = |is: &dyn Fn(&Delivered) -> bool| self.all.iter().filter(|one| is(one)).count();
        deeds.insert("leases lost", count(&|one| one.answer == Answer::LeaseLost));
        deeds.insert("messages delivered again", count(&|one| one.attempt > 1));
        let is_worn_out = |left: &&Left| left.reason == "attempts";
        deeds.insert("messages dead after all attempts", self.left.iter().filter(is_worn_out).count());
        deeds
    }

    /// All that is known of this number.
    pub(crate) fn story(&self, number: i64) -> String {
        let all: Vec<_> = self.all.iter().filter(|one| one.number == number).collect();
        let left: Vec<_> = self.left.iter().filter(|left| left.number == number).collect();
        format!("{all:#?}, left {left:?}")
    }

    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn numbers(&self) -> impl Iterator<Item = i64> {
        self.all.iter().map(|one| one.number).chain(self.left.iter().map(|left| left.number))
    }

    /// In how many places a number certainly is, acknowledged or left.
    pub(crate) fn certain(&self, number: i64) -> usize {
        let done = self.all.iter().filter(|one| one.number == number && one.is_done(End::Acknowledged));
        done.count() + self.left.iter().filter(|left| left.number == number).count()
    }

    /// The numbers that may have been acknowledged, and those that certainly are, or are left.
    pub(crate) fn arrived(&self) -> impl Iterator<Item = i64> {
        let acknowledged = self
            .all
            .iter()
            .filter(|one| one.ended_as(End::Acknowledged) && one.answer != Answer::LeaseLost)
            .map(|one| one.number);
        acknowledged.chain(self.left.iter().map(|left| left.number))
    }

    /// Somebody is about to delete the receipts of receivers. A settlement whose reply is lost at that time
    /// may be done, although its next try finds no lease.
    pub(crate) fn lose_receipts(&mut self) {
        self.without_receipts = usize::MAX;
    }

    /// The receipts are deleted.
    pub(crate) fn have_lost_receipts(&mut self) {
        self.without_receipts = self.events;
    }

    /// What cannot be explained. `may_be_twice` says which numbers may be two messages.
    pub(crate) fn judge(&self, price: Price, may_be_twice: &dyn Fn(i64) -> bool) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut messages = BTreeMap::<MessageId, Vec<&Delivered>>::new();
        let mut ids = BTreeMap::<i64, MessageId>::new();
        for one in &self.all {
            messages.entry(one.id).or_default().push(one);
            if *ids.entry(one.number).or_insert(one.id) != one.id
                && !price.undone
                && !may_be_twice(one.number)
            {
                wrong.push(format!("{} is two messages", one.number));
            }
        }
        if price.undone {
            wrong.extend(self.judge_messages_of_one_number());
        }
        let price_of =
            |id: &MessageId| Price { refused: price.refused || self.unleased.contains(id), ..price };
        for (id, deliveries) in &mut messages {
            // The reply to an earlier claim may arrive later.
            deliveries.sort_by_key(|one| (one.attempt, one.received));
            for (index, later) in deliveries.iter().enumerate() {
                if let Some(why) = explain(&deliveries[..index], later, price_of(id)) {
                    wrong.push(format!("{why}: {deliveries:#?}"));
                }
            }
        }
        for left in &self.left {
            let deliveries = messages.get(&left.id).map_or(&[][..], Vec::as_slice);
            if let Some(why) = explain_left(deliveries, left, price_of(&left.id)) {
                wrong.push(format!("{why}: {left:?}, {deliveries:#?}"));
            }
        }
        wrong
    }

    /// After its first claim is undone, a payload becomes another message. But what was settled and confirmed
    /// is not undone, nor is the claim before it.
    fn judge_messages_of_one_number(&self) -> Vec<String> {
        let mut numbers = BTreeMap::<i64, Vec<&Delivered>>::new();
        for one in &self.all {
            numbers.entry(one.number).or_default().push(one);
        }
        let mut wrong = Vec::new();
        for deliveries in numbers.values() {
            let settled: Vec<_> = deliveries.iter().filter(|one| one.answer == Answer::Done).collect();
            let is_again = |one: &&&&Delivered| {
                let is_final = one.ended_as(End::Acknowledged) || one.ended_as(End::Rejected);
                is_final && deliveries.iter().any(|other| other.received > one.answered)
            };
            if settled.iter().any(|one| one.id != settled[0].id) {
                wrong.push(format!("two messages of one payload were settled: {deliveries:#?}"));
            } else if settled.iter().find(is_again).is_some() {
                wrong.push(format!("delivered after it was acknowledged or rejected: {deliveries:#?}"));
            }
        }
        wrong
    }
}

/// How often these deliveries made a message fail or be lost: at least, and at most.
fn counted(deliveries: &[&Delivered], price: Price) -> (u32, u32) {
    let (mut least, mut most) = (0, 0);
    for one in deliveries {
        let failed = one.ended_as(End::Failed);
        let (at_least, at_most) = match one.answer {
            Answer::Done => (failed, failed),
            Answer::LeaseLost => (!price.refused && !price.undone, true),
            Answer::Unheard | Answer::Unclear if price.exact && !one.may_be_late() => (failed, failed),
            Answer::Unheard | Answer::Unclear | Answer::Closed => (false, true),
        };
        (least, most) = (least + u32::from(at_least), most + u32::from(at_most));
    }
    (least, most)
}

/// Why `later` should not have been delivered after the others.
fn explain(earlier: &[&Delivered], later: &Delivered, price: Price) -> Option<&'static str> {
    let (least, most) = counted(earlier, price);
    if later.attempt - 1 < least {
        return Some("a failure or a loss was not counted");
    }
    if price.exact && later.attempt - 1 > most {
        return Some("something was counted twice");
    }
    for one in earlier {
        let is_final = one.is_done(End::Acknowledged) || one.is_done(End::Rejected);
        if is_final && one.answered < later.received {
            return Some("delivered after it was acknowledged or rejected");
        }
        if price.undone {
            // This claim or the other one did not happen.
            continue;
        }
        let Some((order, at, _)) = one.ended else { continue };
        if one.answer == Answer::Done && order > later.received && later.attempt > one.attempt {
            return Some("an old delivery was settled");
        }
        let is_lost = one.answer == Answer::LeaseLost || order > later.received;
        let held = if order > later.received { later.at } else { at }.saturating_duration_since(one.at);
        if is_lost && !price.refused && one.lease >= LONG && held < one.lease / 2 {
            return Some("a lease was ended too early");
        }
        if one.attempt == later.attempt && !price.refused && !one.ended_as(End::Postponed) {
            return Some("delivered again for no reason");
        }
    }
    None
}

/// From this lease on, no fault of a plan lasts for half of it.
const LONG: Duration = Duration::from_secs(2);

fn explain_left(deliveries: &[&Delivered], left: &Left, price: Price) -> Option<&'static str> {
    let count = |is: &dyn Fn(&Delivered) -> bool| deliveries.iter().filter(|one| is(one)).count() as u32;
    // Claims that a failover has undone are not counted.
    let claims = if price.undone { left.delivery.max(deliveries.len() as u32) } else { left.delivery };
    let Some(unseen) = claims.checked_sub(deliveries.len() as u32) else {
        return Some("more deliveries than claims");
    };
    let failed = count(&|one| one.is_done(End::Failed));
    let is_open = |one: &Delivered| !matches!(one.answer, Answer::Done | Answer::LeaseLost);
    let perhaps = count(&|one| one.ended_as(End::Failed) && is_open(one));
    if left.failed < failed || left.failed > failed + perhaps {
        return Some("failures that did not happen, or were not counted");
    }
    let lost = count(&|one| one.answer == Answer::LeaseLost);
    if left.lost > lost + count(&is_open) + unseen || left.lost < lost && !price.refused && !price.undone {
        return Some("losses that did not happen, or were not counted");
    }
    let (least, most) = counted(deliveries, price);
    if price.exact && !(least..=most).contains(&(left.failed + left.lost)) {
        return Some("wrong counts");
    }
    let is_right = match left.reason.as_str() {
        "" | "attempts" => true,
        "rejected" => count(&|one| one.ended_as(End::Rejected)) > 0,
        "lost" => left.lost >= 5,
        _ => false,
    };
    (!is_right).then_some("a wrong reason")
}

impl Ledger {
    /// Records a delivery. Returns what the next calls name it by.
    pub(crate) fn received(&self, number: i64, id: MessageId, attempt: u32, consumer: Consumer) -> usize {
        let mut record = self.record();
        record.ready_by.entry(number).or_insert_with(std::time::SystemTime::now);
        let deliveries = &mut record.deliveries;
        deliveries.events += 1;
        let (received, at) = (deliveries.events, Instant::now());
        let Consumer { how, lease, extends, .. } = consumer;
        deliveries.did(how.deed());
        deliveries.all.push(Delivered {
            number,
            id,
            attempt,
            lease,
            extends,
            received,
            at,
            ended: None,
            answered: usize::MAX,
            answer: Answer::Unheard,
        });
        deliveries.all.len() - 1
    }

    /// The delivery is settled now.
    pub(crate) fn ends(&self, delivery: usize, end: End) {
        self.record().deliveries.ends_if_open(delivery, end);
    }

    /// # Panics
    /// Panics on an error that no fault explains.
    pub(crate) fn answered(&self, delivery: usize, answer: &redelay::Result<()>) {
        let deliveries = &mut self.record().deliveries;
        deliveries.events += 1;
        let delivered = &mut deliveries.all[delivery];
        delivered.answered = deliveries.events;
        let has_no_receipt = delivered.ended.is_some_and(|(order, ..)| order <= deliveries.without_receipts);
        delivered.answer = match answer.as_ref().map_err(redelay::Error::kind) {
            Ok(()) => Answer::Done,
            Err(ErrorKind::LeaseLost) if has_no_receipt => Answer::Unclear,
            Err(ErrorKind::LeaseLost) => Answer::LeaseLost,
            Err(ErrorKind::OutcomeUnknown | ErrorKind::Refused) => Answer::Unclear,
            Err(ErrorKind::Closed) => Answer::Closed,
            Err(_) => panic!("{answer:?}"),
        };
    }

    /// Whether this is the first time that this number is to wait for an hour.
    pub(crate) fn may_wait(&self, number: i64) -> bool {
        self.record().waited.insert(number)
    }

    /// Records the messages that wait or are dead when all clients have ended.
    pub(crate) fn read_what_is_left(&self, server: &Server) {
        let messages: Vec<(Vec<u8>, Vec<u8>)> = server.get(["HGETALL", MESSAGES]);
        let waiting = messages.iter().map(|(id, record)| {
            let number_at = |from: usize, to: usize| {
                record[from..to].iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte))
            };
            let (delivery, failed, lost) = (number_at(1, 5), number_at(5, 7), number_at(7, 9));
            Left {
                number: number(&record[24..]),
                id: read(id),
                delivery,
                failed,
                lost,
                reason: String::new(),
            }
        });
        type Letter = (Vec<u8>, String, u32, u32, u32, Vec<u8>);
        let letters: Vec<Letter> = server.get(["EVAL", LETTERS, "1", DEAD_MESSAGES]);
        let dead = letters.into_iter().map(|(id, reason, failed, lost, delivery, payload)| Left {
            number: number(&payload),
            id: read(&id),
            delivery,
            failed,
            lost,
            reason,
        });
        self.record().deliveries.left = waiting.chain(dead).collect();
    }
}

pub(crate) fn read(id: &[u8]) -> MessageId {
    let digits: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.parse().expect("an id")
}

/// Id, reason, failures, losses, delivery number and payload of each dead letter.
/// `src/scripts/receive/dead.lua` has the format.
const LETTERS: &str = "local letters, all = {}, redis.call('HGETALL', KEYS[1])
    for i = 1, #all, 2 do
        local letter = cmsgpack.unpack(all[i + 1])
        table.insert(letters, {all[i], letter[1], letter[3], letter[4], letter[7], letter[8]})
    end
    return letters";

/// What is wrong with the keys of receivers when nothing is going on: what is in flight or due, and what is
/// in one key only.
const UNSETTLED: &str = "local inbox, messages, leases, retries, dead, letters = unpack(KEYS)
    local time = redis.call('TIME')
    local latest, wrong = time[1] * 1000 + tonumber(ARGV[1]), {}
    local function check(is_right, what)
        if not is_right then table.insert(wrong, what) end
    end
    check(redis.call('LLEN', inbox) == 0, 'payloads in the inbox')
    check(redis.call('ZCARD', leases) == 0, 'deliveries in flight')
    check(redis.call('ZCOUNT', retries, '-inf', latest) == 0, 'retries that are due')
    for _, id in ipairs(redis.call('HKEYS', messages)) do
        check(redis.call('ZSCORE', retries, id), 'a message without a retry')
    end
    for _, id in ipairs(redis.call('ZRANGE', retries, 0, -1)) do
        check(redis.call('HEXISTS', messages, id) == 1, 'a retry without a message')
    end
    for _, id in ipairs(redis.call('ZRANGE', dead, 0, -1)) do
        check(redis.call('HEXISTS', letters, id) == 1, 'a dead letter without content')
        check(redis.call('HEXISTS', messages, id) == 0, 'a dead letter that is a message')
    end
    check(redis.call('ZCARD', dead) == redis.call('HLEN', letters), 'content without a dead letter')
    return wrong";

/// What is wrong with the keys of receivers when nothing is due within `soon`.
pub(crate) fn unsettled(server: &Server, soon: Duration) -> Vec<String> {
    let ms = soon.as_millis().to_string();
    server.get(["EVAL", UNSETTLED, "6", INBOX, MESSAGES, LEASES, RETRIES, DEAD, DEAD_MESSAGES, &ms])
}

/// Receivers that have ended leave nothing.
pub(crate) fn receipts(server: &Server) -> usize {
    server.get(["HLEN", RECEIPTS])
}

#[test]
fn judgements_of_deliveries() {
    use Answer::{Closed, Done, LeaseLost, Unclear, Unheard};
    use End::{Acknowledged, Failed, Postponed, Rejected};
    let begun = Instant::now();
    let id = |number: u8| read(&[number; 16]);
    // Attempt, received at, settled and answered at, end, answer: of one message, with a lease of 100.
    type Row = (u32, usize, Option<(usize, End, Answer)>);
    let judge = |rows: &[Row], left: Option<(u32, u32, u32, &str)>, price: Price| {
        let at = |order: usize| begun + Duration::from_secs(order as u64);
        let all = rows.iter().map(|(attempt, received, end)| Delivered {
            number: 1,
            id: id(1),
            attempt: *attempt,
            lease: Duration::from_secs(100),
            extends: true,
            received: *received,
            at: at(*received),
            ended: end.map(|(order, end, _)| (order, at(order), end)),
            answered: end.map_or(usize::MAX, |(order, ..)| order),
            answer: end.map_or(Unheard, |(.., answer)| answer),
        });
        let left = left.map(|(delivery, failed, lost, reason)| Left {
            number: 1,
            id: id(1),
            delivery,
            failed,
            lost,
            reason: reason.to_owned(),
        });
        let deliveries =
            Deliveries { all: all.collect(), left: left.into_iter().collect(), ..Deliveries::default() };
        deliveries.judge(price, &|_| false).is_empty()
    };
    let (faults, exact) = (Price::default(), Price { exact: true, ..Price::default() });
    let refused = Price { refused: true, ..Price::default() };
    let end = |at, end, answer| Some((at, end, answer));
    let acknowledged = (2, 60, end(61, Acknowledged, Done));

    // A failure, and its success.
    let failed = |answer| [(1, 1, end(2, Failed, answer)), acknowledged];
    assert!(judge(&failed(Done), None, exact) && judge(&failed(Unheard), None, exact));
    assert!(
        !judge(&[(1, 1, end(2, Postponed, Done)), acknowledged], None, exact),
        "counted, and should not be"
    );
    let again = (1, 60, end(61, Acknowledged, Done));
    assert!(judge(&[(1, 1, end(2, Postponed, Done)), again], None, exact));
    assert!(!judge(&[(1, 1, end(2, Failed, Done)), again], None, faults), "not counted");
    assert!(!judge(&[(1, 1, end(2, Acknowledged, Unclear)), again], None, faults), "for no reason");
    assert!(judge(&[(1, 1, end(2, Acknowledged, Unclear)), again], None, refused));
    assert!(judge(&[(1, 1, end(2, Acknowledged, Unclear)), acknowledged], None, faults));
    // Final settlements.
    for last in [Acknowledged, Rejected] {
        assert!(!judge(&[(1, 1, end(2, last, Done)), acknowledged], None, faults), "{last:?} twice");
    }
    // The lease ended; the first receiver settles later.
    let late = |answer| [(1, 1, end(62, Acknowledged, answer)), acknowledged];
    assert!(judge(&late(LeaseLost), None, faults) && judge(&late(Closed), None, faults));
    assert!(!judge(&late(Done), None, faults), "an old delivery");
    let early = [(1, 1, end(10, Acknowledged, LeaseLost)), acknowledged];
    assert!(!judge(&early, None, faults) && judge(&early, None, refused), "too early");
    // A failover has undone a claim: the same attempt, or a lease that is not there.
    let undone = Price { undone: true, ..Price::default() };
    assert!(judge(&[(1, 1, end(2, Acknowledged, Unclear)), again], None, undone));
    assert!(judge(&early, None, undone) && judge(&[(1, 1, end(10, Failed, LeaseLost)), again], None, undone));
    // But what was settled stays settled, and counted.
    assert!(!judge(&[(1, 1, end(2, Acknowledged, Done)), acknowledged], None, undone));
    assert!(!judge(&[(1, 1, end(2, Failed, Done)), again], None, undone));
    // What is left.
    let twice = [(1, 1, end(2, Failed, Done)), (2, 3, end(4, Failed, Unclear))];
    assert!(judge(&twice, Some((2, 1, 0, "")), faults) && judge(&twice, Some((2, 2, 0, "attempts")), faults));
    assert!(judge(&twice, Some((2, 1, 1, "")), faults) && judge(&twice, Some((3, 1, 2, "")), faults));
    for wrong in
        [(2, 0, 0, ""), (2, 3, 0, ""), (2, 1, 2, ""), (1, 1, 0, ""), (2, 1, 0, "rejected"), (2, 1, 1, "lost")]
    {
        assert!(!judge(&twice, Some(wrong), faults), "{wrong:?}");
    }
    assert!(!judge(&twice, Some((2, 1, 0, "")), exact), "without faults, it was counted");
    assert!(judge(&twice, Some((1, 1, 0, "")), undone), "a claim was undone");
    assert!(!judge(&twice, Some((1, 0, 0, "")), undone), "a failure was undone");
}

#[test]
fn judgements_of_messages_of_one_payload() {
    use Answer::{Done, LeaseLost, Unclear};
    use End::Acknowledged;
    let begun = Instant::now();
    // Id, received at, settled and answered at, answer.
    let judge = |rows: &[(u8, usize, usize, Answer)], price: Price| {
        let all = rows.iter().map(|(id, received, answered, answer)| Delivered {
            number: 1,
            id: read(&[*id; 16]),
            attempt: 1,
            lease: LONG,
            extends: true,
            received: *received,
            at: begun,
            ended: Some((*answered, begun, Acknowledged)),
            answered: *answered,
            answer: *answer,
        });
        Deliveries { all: all.collect(), ..Deliveries::default() }.judge(price, &|_| false).is_empty()
    };
    let undone = Price { undone: true, ..Price::default() };
    let lost = |answer| [(1, 1, 4, answer), (2, 2, 3, Done)];
    assert!(judge(&lost(LeaseLost), undone) && judge(&lost(Unclear), undone));
    assert!(!judge(&lost(LeaseLost), Price::default()), "without a failover, there is one message");
    assert!(!judge(&lost(Done), undone), "settled twice");
    assert!(!judge(&[(1, 1, 2, Done), (2, 3, 4, Unclear)], undone), "delivered after it was acknowledged");
}
