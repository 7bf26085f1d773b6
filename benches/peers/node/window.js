import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'

/** The measuring window, in the monotonic clock of this process. */
export class Window {
  constructor(options) {
    const ahead = options.startAt - (performance.timeOrigin + performance.now())
    if (ahead < 0) throw new Error(`ready ${-ahead} ms after the window's start`)
    this.start = performance.now() + ahead
    this.end = this.start + 1000 * options.seconds
  }

  contains(instant) {
    return instant >= this.start && instant < this.end
  }

  isOver() {
    return performance.now() >= this.end
  }
}

export function sleepUntil(instant) {
  return sleep(Math.max(0, instant - performance.now()))
}
