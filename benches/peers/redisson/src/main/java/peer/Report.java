package peer;

import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/** The one line that a peer program prints. */
final class Report {
    private static final int MOST_WAITS = 20_000;

    private Report() {}

    static String line(Options options, List<Worker> workers, long cpuNanos, int stuck) {
        long held = workers.stream().mapToLong(Worker::heldNanos).sum();
        long all = workers.stream().mapToLong(Worker::acquired).sum();
        StringBuilder line = new StringBuilder("{");
        line.append("\"peer\":\"").append(options.peer()).append('"');
        line.append(",\"acquired\":").append(list(workers.stream().mapToLong(Worker::acquired)));
        line.append(",\"hold_us_mean\":").append(all == 0 ? 0 : held / 1e3 / all);
        line.append(",\"cpu_us\":").append(cpuNanos / 1000);
        line.append(",\"stuck\":").append(stuck);
        if (options.check()) {
            long sections = workers.stream().mapToLong(Worker::sections).sum();
            line.append(",\"sections\":").append(sections);
        }
        line.append(",\"acquired_at_ns\":").append(instants(workers));
        line.append(",\"waits_us\":").append(list(sample(workers)));
        return line.append('}').toString();
    }

    /** Per worker the first instant, then the distance of each from the one before. */
    private static String instants(List<Worker> workers) {
        return workers.stream()
                .map(worker -> list(distances(worker.instants())))
                .collect(Collectors.joining(",", "[", "]"));
    }

    private static LongStream distances(long[] instants) {
        return IntStream.range(0, instants.length)
                .mapToLong(at -> at == 0 ? instants[0] : instants[at] - instants[at - 1]);
    }

    /** Evenly spaced out of all waits in order, so that percentiles survive. */
    private static LongStream sample(List<Worker> workers) {
        long[] waits = workers.stream().flatMapToLong(w -> Arrays.stream(w.waits())).sorted().toArray();
        int kept = Math.min(waits.length, MOST_WAITS);
        return LongStream.range(0, kept)
                .map(index -> waits[(int) ((2 * index + 1) * waits.length / (2L * kept))] / 1000);
    }

    private static String list(LongStream values) {
        return values.mapToObj(Long::toString).collect(Collectors.joining(",", "[", "]"));
    }
}
