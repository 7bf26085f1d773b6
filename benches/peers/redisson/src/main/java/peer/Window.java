package peer;

import java.time.Duration;

/** The measuring window, in the monotonic clock of this process. */
record Window(long start, long end) {

    static Window of(Options options) {
        long ahead = options.startAtUnixMillis() - System.currentTimeMillis();
        if (ahead < 0) {
            throw new IllegalStateException("ready " + -ahead + " ms after the window's start");
        }
        long start = System.nanoTime() + Duration.ofMillis(ahead).toNanos();
        return new Window(start, start + Duration.ofSeconds(options.seconds()).toNanos());
    }

    boolean contains(long instant) {
        return instant - start >= 0 && instant - end < 0;
    }

    boolean isOver() {
        return System.nanoTime() - end >= 0;
    }

    static void sleepUntil(long instant) throws InterruptedException {
        long left = instant - System.nanoTime();
        if (left > 0) {
            Thread.sleep(Duration.ofNanos(left).toMillis(), (int) (left % 1_000_000));
        }
    }
}
