package peer;

import java.util.HashMap;
import java.util.Map;

/** What the command line asks for; every peer program takes the same. */
record Options(
        String peer,
        String redis,
        String name,
        boolean ownNames,
        int workers,
        long holdNanos,
        long pauseMillis,
        long startAtUnixMillis,
        long seconds,
        boolean check) {

    static Options parse(String[] args) {
        Map<String, String> given = new HashMap<>();
        boolean check = false;
        for (int at = 0; at < args.length; at++) {
            if (args[at].equals("--check")) {
                check = true;
            } else if (args[at].startsWith("--") && at + 1 < args.length) {
                given.put(args[at].substring(2), args[++at]);
            } else {
                throw new IllegalArgumentException("unknown argument " + args[at]);
            }
        }
        long afterWarmup = System.currentTimeMillis() + 1000 * number(given, "warmup-s", "2");
        return new Options(
                text(given, "peer", null),
                text(given, "redis", null),
                text(given, "name", null),
                Boolean.parseBoolean(text(given, "own-names", "false")),
                Math.toIntExact(number(given, "workers", null)),
                1000 * number(given, "hold-us", "0"),
                number(given, "pause-ms", "0"),
                number(given, "start-at-unix-ms", Long.toString(afterWarmup)),
                number(given, "seconds", null),
                check);
    }

    private static String text(Map<String, String> given, String key, String otherwise) {
        String value = given.getOrDefault(key, otherwise);
        if (value == null) {
            throw new IllegalArgumentException("--" + key + " is missing");
        }
        return value;
    }

    private static long number(Map<String, String> given, String key, String otherwise) {
        return Long.parseLong(text(given, key, otherwise));
    }
}
