package peer;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RBucket;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

/** Redisson's RLock and RFairLock, with Redisson's default settings: on one name, or on one of each worker's own. */
public final class Main {
    private static final long MOST_DRAIN_NANOS = TimeUnit.SECONDS.toNanos(5);

    private Main() {}

    public static void main(String[] args) {
        // Redisson's own threads would keep the process alive, also after an error.
        Thread.setDefaultUncaughtExceptionHandler((thread, error) -> fail(error));
        try {
            run(Options.parse(args));
            Runtime.getRuntime().halt(0);
        } catch (Exception error) {
            fail(error);
        }
    }

    private static void fail(Throwable error) {
        error.printStackTrace();
        Runtime.getRuntime().halt(1);
    }

    private static void run(Options options) throws InterruptedException {
        Config config = new Config();
        config.useSingleServer().setAddress(options.redis());
        RedissonClient client = Redisson.create(config);
        Window window = Window.of(options);
        List<Worker> workers = new ArrayList<>();
        List<Thread> threads = new ArrayList<>();
        for (int index = 0; index < options.workers(); index++) {
            String name = options.ownNames() ? options.name() + "/" + index : options.name();
            workers.add(new Worker(options, window, lock(client, options, name), counter(client, options)));
            threads.add(start(workers.get(index), index));
        }
        Window.sleepUntil(window.start());
        long before = cpuNanos();
        Window.sleepUntil(window.end());
        long used = cpuNanos() - before;
        int stuck = drain(threads);
        System.out.println(Report.line(options, workers, used, stuck));
    }

    private static RLock lock(RedissonClient client, Options options, String name) {
        return switch (options.peer()) {
            case "redisson-rlock" -> client.getLock(name);
            case "redisson-fair" -> client.getFairLock(name);
            default -> throw new IllegalArgumentException("unknown peer " + options.peer());
        };
    }

    private static RBucket<String> counter(RedissonClient client, Options options) {
        return client.getBucket(options.name() + ":check", StringCodec.INSTANCE);
    }

    private static Thread start(Worker worker, int index) {
        Thread thread = new Thread(worker, "worker-" + index);
        thread.start();
        return thread;
    }

    /** How many still wait for a lock that nobody wants to keep any more. */
    private static int drain(List<Thread> threads) throws InterruptedException {
        long until = System.nanoTime() + MOST_DRAIN_NANOS;
        int stuck = 0;
        for (Thread thread : threads) {
            TimeUnit.NANOSECONDS.timedJoin(thread, Math.max(1, until - System.nanoTime()));
            stuck += thread.isAlive() ? 1 : 0;
        }
        return stuck;
    }

    private static long cpuNanos() {
        return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }
}
