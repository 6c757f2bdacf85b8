/** One event: a trade on the stock exchange. */
public final class Tick {
    final String type;
    final long id;
    final String name;
    final long volume;
    final double price;
    final long time;

    Tick(String type, long id, String name, long volume, double price, long time) {
        this.type = type.intern();
        this.id = id;
        this.name = name.intern();
        this.volume = volume;
        this.price = price;
        this.time = time;
    }

    /** Reads a line with the columns type, id, name, volume, price, stock_time. */
    static Tick read(String line) {
        String[] c = line.split(",");
        return new Tick(
                c[0], Long.parseLong(c[1]), c[2], Long.parseLong(c[3]), Double.parseDouble(c[4]), Long.parseLong(c[5]));
    }

    double number(String attribute) {
        return switch (attribute) {
            case "price" -> price;
            case "volume" -> volume;
            default -> throw new IllegalArgumentException("no number is called " + attribute);
        };
    }
}
