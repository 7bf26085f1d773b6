// redlock on independent servers, all workers of a process on one ioredis connection to each.

import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { report } from '../../peers/node/report.js'
import { Window, sleepUntil } from '../../peers/node/window.js'
import { parseOptions } from './options.js'
import { manager } from './subjects.js'
import { Worker } from './worker.js'

const MOST_DRAIN_MILLIS = 5_000

const options = parseOptions()
const servers = options.redis.map(url => new Redis(url, { enableOfflineQueue: false, lazyConnect: true }))
for (const server of servers) {
  // A server that is down is asked again and again.
  server.on('error', () => {})
  await server.connect().catch(() => {})
}
const locks = manager(options.peer, servers)
const window = new Window(options)
const workers = options.names.map(name => new Worker(locks, name, window))
let running = workers.length
const done = Promise.all(workers.map(worker => worker.run().then(() => running--)))

await sleepUntil(window.start)
const before = process.cpuUsage()
await sleepUntil(window.end)
const { user, system } = process.cpuUsage(before)

await Promise.race([done, sleep(MOST_DRAIN_MILLIS, undefined, { ref: false })])
const line = { runtime: 'node', switches: 0, ...JSON.parse(report(options, workers, user + system, running)) }
process.stdout.write(`${JSON.stringify(line)}\n`, () => process.exit())
