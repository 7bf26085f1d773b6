import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { Mutex, TimeoutError } from 'redis-semaphore'

const SETTINGS = {
  // A look every 2 ms, and as long a wait as the run may last.
  'redis-semaphore': { retryInterval: 2, acquireTimeout: 600_000 },
  'redis-semaphore-default': {},
}

/** One task that takes the contended lock again and again until the window is over. */
export class Worker {
  acquired = 0
  heldMillis = 0
  sections = 0
  waitsMillis = []
  /** When this worker got the lock, in the system's monotonic clock, which all processes share. */
  instants = []

  constructor(redis, options, window) {
    const settings = SETTINGS[options.peer]
    if (settings === undefined) throw new Error(`unknown peer ${options.peer}`)
    this.mutex = new Mutex(redis, options.name, settings)
    this.redis = redis
    this.options = options
    this.window = window
  }

  async run() {
    while (!this.window.isOver()) {
      await this.turn()
      if (this.options.pauseMillis > 0) await sleep(this.options.pauseMillis)
    }
  }

  async turn() {
    const asked = performance.now()
    await this.acquire()
    const instant = process.hrtime.bigint()
    const got = performance.now()
    // Who gets the lock after the end lets the others out at once.
    if (!this.window.isOver()) await this.section()
    const held = performance.now() - got
    await this.mutex.release()
    if (this.window.contains(got)) this.count(instant, got - asked, held)
  }

  /** A wait that the library's own limit ended goes on: the worker still wants the lock. */
  async acquire() {
    for (;;) {
      try {
        return await this.mutex.acquire()
      } catch (error) {
        if (!(error instanceof TimeoutError)) throw error
      }
    }
  }

  async section() {
    if (this.options.holdMillis > 0) await sleep(this.options.holdMillis)
    if (!this.options.check) return
    const key = `${this.options.name}:check`
    const before = Number((await this.redis.get(key)) ?? 0)
    await this.redis.set(key, before + 1)
    this.sections += 1
  }

  count(instant, waited, held) {
    this.acquired += 1
    this.heldMillis += held
    this.waitsMillis.push(waited)
    this.instants.push(instant)
  }
}
