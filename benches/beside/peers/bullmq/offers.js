'use strict';
const { Queue } = require('bullmq');

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

// Offers delayed messages at a rate. A payload begins with the time at which it is due.
async function offer(connection, job) {
  const queue = new Queue(job.queue, { connection });
  const begun = performance.now();
  const offers = [];
  for (let number = 0; number < job.count; number++) {
    const wait = begun + (number / job.per_second) * 1000 - performance.now();
    if (wait > 0) {
      await new Promise(resolve => setTimeout(resolve, wait));
    }
    const [least, most] = job.delay;
    const delay = least + Math.floor(Math.random() * (most - least + 1));
    const due = Math.round((performance.timeOrigin + performance.now() + delay) * 1000);
    offers.push(queue.add('message', `${due} `.padEnd(job.size - 2, 'x'), { ...DONE, delay }));
  }
  await Promise.all(offers);
  return { count: job.count, seconds: (performance.now() - begun) / 1000 };
}

module.exports = { fill, offer };
