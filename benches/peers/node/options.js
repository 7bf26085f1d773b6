import { parseArgs } from 'node:util'

const text = { type: 'string' }

/** What the command line asks for; every peer program takes the same. */
export function parseOptions() {
  const { values } = parseArgs({
    options: {
      peer: text,
      redis: text,
      name: text,
      workers: text,
      'hold-us': { ...text, default: '0' },
      'pause-ms': { ...text, default: '0' },
      'warmup-s': { ...text, default: '2' },
      seconds: text,
      'process-index': { ...text, default: '0' },
      'start-at-unix-ms': text,
      check: { type: 'boolean', default: false },
    },
  })
  return {
    peer: needed(values, 'peer'),
    redis: needed(values, 'redis'),
    name: needed(values, 'name'),
    workers: number(values, 'workers'),
    holdMillis: number(values, 'hold-us') / 1000,
    pauseMillis: number(values, 'pause-ms'),
    startAt: startAt(values),
    seconds: number(values, 'seconds'),
    check: values.check,
  }
}

function startAt(values) {
  if (values['start-at-unix-ms'] !== undefined) return number(values, 'start-at-unix-ms')
  return Date.now() + 1000 * number(values, 'warmup-s')
}

function number(values, key) {
  const value = Number(needed(values, key))
  if (!Number.isFinite(value)) throw new Error(`--${key} is not a number`)
  return value
}

function needed(values, key) {
  if (values[key] === undefined) throw new Error(`--${key} is missing`)
  return values[key]
}
