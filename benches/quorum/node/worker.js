import { performance } from 'node:perf_hooks'

/** One task that takes a lock again and again until the window is over. */
export class Worker {
  acquired = 0
  heldMillis = 0
  sections = 0
  waitsMillis = []
  /** When this worker got the lock, in the system's monotonic clock, which all processes share. */
  instants = []

  constructor(acquire, name, window) {
    this.acquire = acquire
    this.name = name
    this.window = window
  }

  async run() {
    while (!this.window.isOver()) await this.turn()
  }

  async turn() {
    const asked = performance.now()
    const release = await this.acquire(this.name)
    const instant = process.hrtime.bigint()
    const got = performance.now()
    // A server that is down answers nothing; the lock is given back by the others.
    await release().catch(() => {})
    if (this.window.contains(got)) this.count(instant, got - asked)
  }

  count(instant, waited) {
    this.acquired += 1
    this.waitsMillis.push(waited)
    this.instants.push(instant)
  }
}
