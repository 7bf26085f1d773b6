import Redlock4 from 'redlock'
import Redlock5 from 'redlock-beta'

/** As long as Leasehold's. */
const TTL_MILLIS = 30_000

/** Tries until it has the lock; the pause between two tries is random and about as long as that of the other peer. */
const OFTEN = { retryCount: -1, retryDelay: 2, retryJitter: 2 }

/** What the library does by itself, except that it does not give up. */
const DEFAULT = { retryCount: -1 }

const SUBJECTS = {
  'node-redlock-4': servers => of4(new Redlock4(servers, OFTEN)),
  'node-redlock-4-default': servers => of4(new Redlock4(servers, DEFAULT)),
  'node-redlock-5b': servers => of5(new Redlock5(servers, OFTEN)),
  'node-redlock-5b-default': servers => of5(new Redlock5(servers, DEFAULT)),
}

/** What acquires a name and returns what releases it. */
export function manager(peer, servers) {
  const subject = SUBJECTS[peer]
  if (subject === undefined) throw new Error(`unknown peer ${peer}`)
  return subject(servers)
}

function of4(redlock) {
  redlock.on('clientError', () => {})
  return async name => {
    const lock = await redlock.lock(name, TTL_MILLIS)
    return () => lock.unlock()
  }
}

function of5(redlock) {
  redlock.on('error', () => {})
  return async name => {
    const lock = await redlock.acquire([name], TTL_MILLIS)
    return () => lock.release()
  }
}
