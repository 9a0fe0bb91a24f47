'use strict';
// Runs the jobs of benches/beside with BullMQ: one JSON object on each line, and an answer to each. It ends when its input
// ends. benches/beside/src/job.rs describes the jobs.
const readline = require('node:readline');
const { Redis } = require('ioredis');
const { fill, offer } = require('./offers');
const { Working } = require('./working');

const connection = new Redis(process.argv[2], { maxRetriesPerRequest: null });
let working;

async function run(job) {
  switch (job.job) {
    case 'fill':
      return fill(connection, job);
    case 'offer':
      return offer(connection, job);
    case 'receive':
      return receive(job);
    case 'work':
      working = await Working.start(connection, job);
      return {};
    case 'collected':
      return { count: working.count };
    case 'stop':
      return working.stop();
    case 'close':
      return {};
    default:
      throw new Error(`no such job: ${job.job}`);
  }
}

// Receives and acknowledges messages that are ready. The time begins with the start of the worker, and ends when the last job
// is completed.
async function receive(job) {
  const begun = performance.now();
  const receiving = await Working.start(connection, { ...job, handler: 'done' });
  await receiving.all;
  const seconds = (performance.now() - begun) / 1000;
  await receiving.stop();
  return { count: job.count, seconds };
}

async function main() {
  await connection.ping();
  console.log('{}');
  for await (const line of readline.createInterface({ input: process.stdin })) {
    let reply;
    try {
      reply = await run(JSON.parse(line));
    } catch (error) {
      reply = { error: String(error) };
    }
    console.log(JSON.stringify(reply));
  }
  process.exit(0);
}

main();
