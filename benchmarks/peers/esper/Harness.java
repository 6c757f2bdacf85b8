import com.espertech.esper.common.client.configuration.Configuration;
import com.espertech.esper.compiler.client.CompilerArguments;
import com.espertech.esper.compiler.client.EPCompilerProvider;
import com.espertech.esper.runtime.client.EPEventService;
import com.espertech.esper.runtime.client.EPRuntime;
import com.espertech.esper.runtime.client.EPRuntimeProvider;
import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * Counts what statements of Esper find in ticks, in one thread, with Esper's clock at the time of the events.
 *
 * <p>Each line of standard input is a request, words separated by tabs: a CSV file of ticks with a header, the time limit
 * in seconds, how often the ticks come one after another (a minute apart), and the statement in EPL. Each
 * answer is one line of JSON. A statement that is new runs for a while before it is timed, for Java's compiler.
 */
public final class Harness {
    private static final long MINUTE = 60_000;

    /** The most seconds in which a new statement runs first. */
    private static final double WARMING = 2;

    private final List<Tick> once = new ArrayList<>();
    private final Set<String> warm = new HashSet<>();
    private List<Tick> ticks = List.of();

    private String file = "";

    private void read(String path) throws Exception {
        if (path.equals(file)) {
            return;
        }
        once.clear();
        ticks = List.of();
        try (var lines = Files.lines(Path.of(path))) {
            lines.skip(1).forEach(line -> once.add(Tick.read(line)));
        }
        file = path;
        warm.clear();
    }

    public static void main(String[] arguments) throws Exception {
        Harness harness = new Harness();
        System.out.println("{\"ready\": true}");
        var requests = new BufferedReader(new InputStreamReader(System.in));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            String[] words = line.split("\t", 4);
            harness.read(words[0]);
            System.out.println(harness.answer(Double.parseDouble(words[1]), Integer.parseInt(words[2]), words[3]));
        }
    }

    private String answer(double limit, int times, String epl) {
        try {
            repeat(times);
            if (warm.add(epl)) {
                run(epl, Math.min(limit / 4, WARMING));
            }
            return run(epl, limit);
        } catch (OutOfMemoryError full) {
            return "{\"error\": \"out of memory\"}";
        } catch (Exception failure) {
            return "{\"error\": \"" + failure.toString().replaceAll("[^ -~]|[\"\\\\]", " ") + "\"}";
        }
    }

    private void repeat(int times) {
        if (ticks.size() == times * once.size()) {
            return;
        }
        ticks = new ArrayList<>();
        long span = once.get(once.size() - 1).getTime() - once.get(0).getTime() + MINUTE;
        for (long turn = 0; turn < times; turn++) {
            for (Tick tick : once) {
                ticks.add(tick.later(turn * span));
            }
        }
    }

    private String run(String epl, double limit) throws Exception {
        Configuration configuration = new Configuration();
        configuration.getCommon().addEventType("Tick", Tick.class);
        configuration.getRuntime().getThreading().setInternalTimerEnabled(false);
        EPRuntime runtime = EPRuntimeProvider.getRuntime("ticks", configuration);
        try {
            var compiled = EPCompilerProvider.getCompiler().compile(epl, new CompilerArguments(configuration));
            var statement = runtime.getDeploymentService().deploy(compiled).getStatements()[0];
            long[] matches = new long[1];
            statement.addListener((found, gone, of, at) -> matches[0] += found.length);
            return timed(runtime.getEventService(), limit, matches);
        } finally {
            runtime.destroy();
        }
    }

    private String timed(EPEventService service, double limit, long[] matches) {
        long used = processor();
        long begin = System.nanoTime();
        long last = begin + (long) (limit * 1e9);
        long now = Long.MIN_VALUE;
        for (Tick tick : ticks) {
            if (tick.getTime() != now) {
                now = tick.getTime();
                service.advanceTime(now);
                if (System.nanoTime() > last) {
                    return "{\"error\": \"over the limit\"}";
                }
            }
            service.sendEventBean(tick, "Tick");
        }
        double seconds = (System.nanoTime() - begin) / 1e9;
        String form = "{\"events\": %d, \"seconds\": %.9f, \"processor\": %.9f, \"matches\": %d}";
        return String.format(form, ticks.size(), seconds, (processor() - used) / 1e9, matches[0]);
    }

    /** Nanoseconds that all threads of this process have used. */
    private static long processor() {
        return ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class).getProcessCpuTime();
    }
}
