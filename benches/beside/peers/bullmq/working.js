'use strict';
const { Worker } = require('bullmq');
const { names } = require('./names');

// Workers whose handler counts, one for each queue.
class Working {
  // Starts workers with BullMQ's defaults, but for the concurrency.
  static async start(connection, job) {
    const working = new Working(job);
    const queues = names(job);
    const concurrency = Math.ceil(job.concurrency / queues.length);
    working.workers = queues.map(queue => {
      const worker = new Worker(queue, received => working.handle(received), { connection, concurrency });
      worker.on('error', error => console.error(error));
      worker.on('completed', () => working.completed());
      return worker;
    });
    await Promise.all(working.workers.map(worker => worker.waitUntilReady()));
    return working;
  }

  constructor(job) {
    this.job = job;
    this.count = 0;
    this.late = [];
    this.all = new Promise(resolve => (this.whenAll = resolve));
  }

  async handle(received) {
    if (this.job.handler === 'hold') {
      this.count += 1;
      await new Promise(() => {});
    }
    if (this.job.handler === 'late') {
      const now = Math.round((performance.timeOrigin + performance.now()) * 1000);
      this.late.push(now - Number(received.data.split(' ', 1)[0]));
    }
    if (this.job.handler === 'fail_once' && received.attemptsMade === 0) {
      throw new Error('the first attempt fails');
    }
  }

  completed() {
    this.count += 1;
    if (this.count === this.job.count) {
      this.whenAll();
    }
  }

  async stop() {
    // With a handler that never returns, a close would wait for ever.
    await Promise.all(this.workers.map(worker => worker.close(this.job.handler === 'hold')));
    return { count: this.count, late: this.late };
  }
}

module.exports = { Working };
