import { parseArgs } from 'node:util'

const text = { type: 'string' }

/** What the command line asks for: the same as of the worker processes in Rust. */
export function parseOptions() {
  const { values } = parseArgs({
    options: {
      peer: text,
      redis: text,
      name: text,
      'own-names': { ...text, default: 'false' },
      workers: text,
      seconds: text,
      'process-index': text,
      'start-at-unix-ms': text,
    },
  })
  const name = worker =>
    values['own-names'] === 'true' ? `${values.name}/${values['process-index']}/${worker}` : values.name
  return {
    peer: values.peer,
    redis: values.redis.split(','),
    names: Array.from({ length: Number(values.workers) }, (_, worker) => name(worker)),
    startAt: Number(values['start-at-unix-ms']),
    seconds: Number(values.seconds),
  }
}
