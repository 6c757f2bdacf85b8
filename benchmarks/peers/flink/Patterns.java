import java.time.Duration;
import java.util.Iterator;
import java.util.List;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.pattern.Pattern;

/**
 * Patterns from words, every step with skip-till-any-match: {@code label types conditions} for a step, {@code +} after
 * one that is repeated, {@code ( … )+} around a group that is. Types are separated by {@code |}, conditions by
 * {@code &}, {@code -} stands for none; a condition is {@code attribute operator value}, the value a text, a number or
 * {@code label.attribute}.
 */
final class Patterns {
    private static final AfterMatchSkipStrategy SKIP = AfterMatchSkipStrategy.noSkip();

    private final Iterator<String> words;

    private Patterns(List<String> words) {
        this.words = words.iterator();
    }

    static Pattern<Tick, Tick> read(List<String> words, long window) {
        return new Patterns(words).sequence().within(Duration.ofMillis(window));
    }

    private Pattern<Tick, Tick> sequence() {
        Pattern<Tick, Tick> all = null;
        while (words.hasNext()) {
            String word = words.next();
            if (word.equals(")+")) {
                break;
            }
            if (word.equals("+")) {
                all = all.oneOrMore().allowCombinations();
            } else if (word.equals("(")) {
                Pattern<Tick, Tick> inner = sequence();
                Pattern<Tick, Tick> group = all == null ? Pattern.begin(inner, SKIP) : all.followedByAny(inner);
                all = group.oneOrMore().allowCombinations();
            } else {
                Pattern<Tick, Tick> step = all == null ? Pattern.begin(word, SKIP) : all.followedByAny(word);
                all = step.where(new Step(words.next(), words.next()));
            }
        }
        return all;
    }
}
