// BullMQ on Redis, in Node: the verbs of benchmarks/peers/common.py.

import { openSync, writeSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

// The packages are in an environment of their own, not beside this file.
const { Queue, Worker } = createRequire(`${process.env.PEER_HOME}/package.json`)('bullmq');

const AT_ONCE = 50;
const PART = 1000;
const name = process.env.PEER_QUEUE;
const url = new URL(process.env.PEER_URL);
const connection = { host: url.hostname, port: Number(url.port), maxRetriesPerRequest: null };
const [verb, number] = [process.argv[2], Number(process.argv[3] ?? 0)];
const now = () => (performance.timeOrigin + performance.now()) / 1000;

const record = openSync(process.env.BENCH_RECORD ?? '/dev/null', 'a');
const write = (sent) => {
  const row = Buffer.alloc(24);
  row.writeDoubleLE(sent, 0);
  row.writeDoubleLE(now(), 8);
  row.writeBigUInt64LE(BigInt(process.pid), 16);
  writeSync(record, row);
};

const jobs = {
  noop: async () => write(0),
  timed: async ({ sent }) => write(sent),
  slow: async ({ number: which }) => {
    write(which + 1);
    await sleep(50);
    write(-which - 1);
  },
};

if (verb === 'worker') {
  const short = process.env.PEER_CRASH ? { lockDuration: 5000, stalledInterval: 2000, maxStalledCount: 3 } : {};
  new Worker(name, (job) => jobs[job.name](job.data), { connection, concurrency: number, ...short });
} else if (verb !== 'prepare') {
  const queue = new Queue(name, { connection });
  await queue.waitUntilReady();
  const pushes = {
    async push_many() {
      for (let first = 0; first < number; first += PART) {
        const size = Math.min(PART, number - first);
        await queue.addBulk(Array.from({ length: size }, () => ({ name: 'noop', data: {} })));
      }
    },
    async push_awaited() {
      for (let done = 0; done < number; done++) await queue.add('noop', {});
    },
    async push_gathered() {
      let left = number;
      const one = async () => {
        while (left-- > 0) await queue.add('noop', {});
      };
      await Promise.all(Array.from({ length: AT_ONCE }, one));
    },
    async push_slow() {
      for (let which = 0; which < number; which++) await queue.add('slow', { number: which });
    },
    async push_timed() {
      for await (const _ of createInterface({ input: process.stdin })) {
        await queue.add('timed', { sent: now() });
        console.log();
      }
    },
  };
  const begin = performance.now();
  await pushes[verb]();
  console.log((performance.now() - begin) / 1000);
  await queue.close();
}
