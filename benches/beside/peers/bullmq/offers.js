'use strict';
const { Queue } = require('bullmq');
const { names } = require('./names');

// A completed job is removed, so that none of the systems keeps what is done.
const DONE = { removeOnComplete: true };
// A job that failed is due again after a millisecond.
const RETRIED = { ...DONE, attempts: 10, backoff: { type: 'fixed', delay: 1 } };
const CHUNK = 1000;

// Puts messages that are ready. A payload is JSON: the quotes are a part of its size.
async function fill(connection, job) {
  const queue = new Queue(job.queue, { connection });
  const data = 'x'.repeat(job.size - 2);
  const opts = job.handler === 'fail_once' ? RETRIED : DONE;
  for (let left = job.count; left > 0; left -= CHUNK) {
    await queue.addBulk(Array.from({ length: Math.min(left, CHUNK) }, () => ({ name: 'message', data, opts })));
  }
  return { count: job.count };
}

// Offers delayed messages: at a rate, or as fast as possible. Several queues take turns.
async function offer(connection, job) {
  const queues = names(job).map(name => new Queue(name, { connection }));
  const begun = performance.now();
  let turns = 0;
  const offerBatch = async () => {
    const queue = queues[turns++ % queues.length];
    if (job.batch === 1) {
      const { name, data, opts } = fresh(job);
      await queue.add(name, data, opts);
    } else {
      await queue.addBulk(Array.from({ length: job.batch }, () => fresh(job)));
    }
  };
  const count = job.per_second > 0 ? await atARate(job, offerBatch) : await inChains(job, offerBatch);
  return { count, seconds: (performance.now() - begun) / 1000 };
}

// A payload begins with the time at which it is due.
function fresh(job) {
  const [least, most] = job.delay;
  const delay = least + Math.floor(Math.random() * (most - least + 1));
  const due = Math.round((performance.timeOrigin + performance.now() + delay) * 1000);
  return { name: 'message', data: `${due} `.padEnd(job.size - 2, 'x'), opts: { ...DONE, delay } };
}

// Independent of the replies: a late reply does not delay the next offer.
async function atARate(job, call) {
  const begun = performance.now();
  const calls = [];
  for (let number = 0; number < job.count; number++) {
    const wait = begun + (number / job.per_second) * 1000 - performance.now();
    if (wait > 0) {
      await new Promise(resolve => setTimeout(resolve, wait));
    }
    calls.push(call());
  }
  await Promise.all(calls);
  return job.count;
}

// Keeps `concurrency` calls in flight.
async function inChains(job, call) {
  const end = performance.now() + job.millis;
  let claimed = 0;
  const chain = async () => {
    while (claimed < job.count && performance.now() < end) {
      claimed += job.batch;
      await call();
    }
  };
  await Promise.all(Array.from({ length: job.concurrency }, chain));
  return claimed;
}

module.exports = { fill, offer };
