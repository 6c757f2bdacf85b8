import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.api.java.typeutils.GenericTypeInfo;
import org.apache.flink.cep.configuration.SharedBufferCacheConfig;
import org.apache.flink.cep.nfa.NFA;
import org.apache.flink.cep.nfa.NFAState;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.nfa.compiler.NFACompiler;
import org.apache.flink.cep.nfa.sharedbuffer.SharedBuffer;
import org.apache.flink.cep.nfa.sharedbuffer.SharedBufferAccessor;

/**
 * Runs patterns on ticks with the automaton of FlinkCEP alone, without a job around it.
 *
 * <p>Each line of standard input is a request, words separated by tabs: a CSV file of ticks with a header, the time limit
 * in seconds, the window in milliseconds, then the pattern (see {@link Patterns}). Each answer is one line of JSON. A
 * pattern that is new runs for a while before it is timed, for Java's compiler.
 */
public final class Harness {
    private static final int CACHE = 1 << 16;

    /** The most seconds in which a new pattern runs first. */
    private static final double WARMING = 2;

    public static void main(String[] arguments) throws Exception {
        List<Tick> ticks = new ArrayList<>();
        Set<String> warm = new HashSet<>();
        String file = "";
        System.out.println("{\"ready\": true}");
        var requests = new BufferedReader(new InputStreamReader(System.in));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            List<String> words = Arrays.asList(line.split("\t"));
            if (!words.get(0).equals(file)) {
                file = words.get(0);
                ticks.clear();
                try (var rows = Files.lines(Path.of(file))) {
                    rows.skip(1).forEach(row -> ticks.add(Tick.read(row)));
                }
            }
            double limit = Double.parseDouble(words.get(1));
            long window = Long.parseLong(words.get(2));
            if (warm.add(line)) {
                answer(ticks, words.subList(3, words.size()), window, Math.min(limit / 4, WARMING));
            }
            System.out.println(answer(ticks, words.subList(3, words.size()), window, limit));
        }
    }

    private static String answer(List<Tick> ticks, List<String> words, long window, double limit) {
        try {
            return run(ticks, words, window, limit);
        } catch (OutOfMemoryError full) {
            return "{\"error\": \"out of memory\"}";
        } catch (Exception failure) {
            return "{\"error\": \"" + failure.toString().replaceAll("[^ -~]|[\"\\\\]", " ") + "\"}";
        }
    }

    private static String run(List<Tick> ticks, List<String> words, long window, double limit) throws Exception {
        NFA<Tick> nfa = NFACompiler.compileFactory(Patterns.read(words, window), false).createNFA();
        var serializer = new GenericTypeInfo<>(Tick.class).createSerializer(new SerializerConfigImpl());
        var config = new SharedBufferCacheConfig(CACHE, CACHE, Duration.ofDays(1));
        var buffer = new SharedBuffer<>(new HeapState(), serializer, config);
        NFAState state = nfa.createInitialNFAState();
        AfterMatchSkipStrategy all = AfterMatchSkipStrategy.noSkip();
        long matches = 0;
        long read = 0;
        long used = processor();
        long begin = System.nanoTime();
        long last = begin + (long) (limit * 1e9);
        try {
            for (Tick tick : ticks) {
                try (SharedBufferAccessor<Tick> accessor = buffer.getAccessor()) {
                    nfa.advanceTime(accessor, state, tick.time, all);
                    for (var match : nfa.process(accessor, state, tick, tick.time, all, () -> tick.time)) {
                        matches++;
                        read += touch(match);
                    }
                }
                if (System.nanoTime() > last) {
                    return "{\"error\": \"over the limit\"}";
                }
            }
        } finally {
            buffer.releaseCacheStatisticsTimer();
        }
        double seconds = (System.nanoTime() - begin) / 1e9;
        // What was read of the matches is part of the answer, so that the compiler cannot leave the reading out.
        String form = "{\"events\": %d, \"seconds\": %.9f, \"processor\": %.9f, \"matches\": %d, \"read\": %d}";
        return String.format(form, ticks.size(), seconds, (processor() - used) / 1e9, matches, read);
    }

    /** Nanoseconds that all threads of this process have used. */
    private static long processor() {
        return ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class).getProcessCpuTime();
    }

    /** Looks at every event of a match, as the experiments of the papers do in place of printing. */
    private static long touch(Map<String, List<Tick>> match) {
        long read = 0;
        for (List<Tick> events : match.values()) {
            for (Tick event : events) {
                read += event.time % 10 == 0 ? 1 : 0;
            }
        }
        return read;
    }
}
