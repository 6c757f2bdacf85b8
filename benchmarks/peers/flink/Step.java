import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;

/** What one event must satisfy, by itself and in relation to the events of earlier steps. */
final class Step extends IterativeCondition<Tick> {
    private record Relation(String attribute, String operator, String label, String other) {}

    private static final long serialVersionUID = 1;

    private final List<String> types;
    // Nothing is sent to other machines here, so what cannot be serialised does no harm.
    private final transient List<Predicate<Tick>> alone = new ArrayList<>();
    private final transient List<Relation> relations = new ArrayList<>();

    Step(String types, String conditions) {
        this.types = List.of(types.split("\\|"));
        if (conditions.equals("-")) {
            return;
        }
        for (String condition : conditions.split("&")) {
            String[] parts = condition.split("(?<=[<>=])(?![<>=])|(?<![<>=])(?=[<>=])");
            String attribute = parts[0];
            String operator = parts[1];
            String value = parts[2];
            if (attribute.equals("name")) {
                String text = value.intern();
                alone.add(tick -> tick.name == text);
            } else if (Character.isLetter(value.charAt(0))) {
                String[] reference = value.split("\\.");
                relations.add(new Relation(attribute, operator, reference[0], reference[1]));
            } else {
                double number = Double.parseDouble(value);
                alone.add(tick -> compare(tick.number(attribute), operator, number));
            }
        }
    }

    @Override
    public boolean filter(Tick tick, Context<Tick> context) throws Exception {
        if (!types.contains(tick.type)) {
            return false;
        }
        for (Predicate<Tick> condition : alone) {
            if (!condition.test(tick)) {
                return false;
            }
        }
        for (Relation relation : relations) {
            for (Tick earlier : context.getEventsForPattern(relation.label)) {
                if (!compare(tick.number(relation.attribute), relation.operator, earlier.number(relation.other))) {
                    return false;
                }
            }
        }
        return true;
    }

    private static boolean compare(double left, String operator, double right) {
        return switch (operator) {
            case "=" -> left == right;
            case "<" -> left < right;
            case "<=" -> left <= right;
            case ">" -> left > right;
            case ">=" -> left >= right;
            default -> throw new IllegalArgumentException("no comparison is written " + operator);
        };
    }
}
