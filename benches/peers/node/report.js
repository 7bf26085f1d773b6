const MOST_WAITS = 20_000

/** The one line that a peer program prints. */
export function report(options, workers, cpuMicros, stuck) {
  const acquired = workers.map(worker => worker.acquired)
  const all = sum(acquired)
  const heldMicros = 1000 * sum(workers.map(worker => worker.heldMillis))
  return JSON.stringify({
    peer: options.peer,
    acquired,
    hold_us_mean: all === 0 ? 0 : heldMicros / all,
    cpu_us: cpuMicros,
    stuck,
    ...(options.check && { sections: sum(workers.map(worker => worker.sections)) }),
    acquired_at_ns: workers.map(worker => distances(worker.instants)),
    waits_us: sample(workers.flatMap(worker => worker.waitsMillis)),
  })
}

function sum(values) {
  return values.reduce((total, value) => total + value, 0)
}

/** The first instant, then the distance of each from the one before. */
function distances(instants) {
  return instants.map((instant, at) => Number(at === 0 ? instant : instant - instants[at - 1]))
}

/** Evenly spaced out of all waits in order, so that percentiles survive. */
function sample(waitsMillis) {
  const waits = waitsMillis.sort((a, b) => a - b)
  const kept = Math.min(waits.length, MOST_WAITS)
  const at = index => Math.floor(((index + 0.5) * waits.length) / kept)
  return Array.from({ length: kept }, (_, index) => Math.round(1000 * waits[at(index)]))
}
