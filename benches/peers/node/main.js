// redis-semaphore on one contended name, all workers of a process on one ioredis connection.

import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { parseOptions } from './options.js'
import { report } from './report.js'
import { Window, sleepUntil } from './window.js'
import { Worker } from './worker.js'

const MOST_DRAIN_MILLIS = 5_000

const options = parseOptions()
const redis = new Redis(options.redis)
await redis.ping()
const window = new Window(options)
const workers = Array.from({ length: options.workers }, () => new Worker(redis, options, window))
let running = workers.length
const done = Promise.all(workers.map(worker => worker.run().then(() => running--)))

await sleepUntil(window.start)
const before = process.cpuUsage()
await sleepUntil(window.end)
const { user, system } = process.cpuUsage(before)

await Promise.race([done, sleep(MOST_DRAIN_MILLIS, undefined, { ref: false })])
process.stdout.write(`${report(options, workers, user + system, running)}\n`, () => process.exit())
