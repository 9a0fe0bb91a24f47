'use strict';

// The queues that the name in a job stands for.
function names(job) {
  return job.queues > 1 ? Array.from({ length: job.queues }, (_, number) => `${job.queue}-${number}`) : [job.queue];
}

module.exports = { names };
