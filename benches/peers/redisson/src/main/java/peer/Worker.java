package peer;

import java.util.Arrays;
import java.util.concurrent.locks.LockSupport;
import org.redisson.api.RBucket;
import org.redisson.api.RLock;

/** One thread that takes the contended lock again and again until the window is over. */
final class Worker implements Runnable {
    private final Options options;
    private final Window window;
    private final RLock lock;
    private final RBucket<String> counter;

    private long[] waits = new long[4096];
    private long[] instants = new long[4096];
    private int acquired;
    private long heldNanos;
    private long sections;

    Worker(Options options, Window window, RLock lock, RBucket<String> counter) {
        this.options = options;
        this.window = window;
        this.lock = lock;
        this.counter = counter;
    }

    int acquired() {
        return acquired;
    }

    long heldNanos() {
        return heldNanos;
    }

    long sections() {
        return sections;
    }

    long[] waits() {
        return Arrays.copyOf(waits, acquired);
    }

    /** When this worker got the lock, in the system's monotonic clock, which all processes share. */
    long[] instants() {
        return Arrays.copyOf(instants, acquired);
    }

    @Override
    public void run() {
        while (!window.isOver()) {
            turn();
            if (options.pauseMillis() > 0) {
                LockSupport.parkNanos(1_000_000 * options.pauseMillis());
            }
        }
    }

    private void turn() {
        long asked = System.nanoTime();
        lock.lock();
        long got = System.nanoTime();
        // Who gets the lock after the end lets the others out at once.
        if (!window.isOver()) {
            section();
        }
        long held = System.nanoTime() - got;
        lock.unlock();
        if (window.contains(got)) {
            count(got, got - asked, held);
        }
    }

    private void section() {
        if (options.holdNanos() > 0) {
            LockSupport.parkNanos(options.holdNanos());
        }
        if (options.check()) {
            String before = counter.get();
            counter.set(Long.toString(before == null ? 1 : Long.parseLong(before) + 1));
            sections++;
        }
    }

    private void count(long got, long waited, long held) {
        if (acquired == waits.length) {
            waits = Arrays.copyOf(waits, 2 * waits.length);
            instants = Arrays.copyOf(instants, waits.length);
        }
        instants[acquired] = got;
        waits[acquired++] = waited;
        heldNanos += held;
    }
}
