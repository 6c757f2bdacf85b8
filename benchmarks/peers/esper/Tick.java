/** One event: a trade on the stock exchange, as a class that Esper reads by its getters. */
public final class Tick {
    private final String type;
    private final String name;
    private final long volume;
    private final double price;
    private final long time;

    Tick(String type, String name, long volume, double price, long time) {
        this.type = type.intern();
        this.name = name.intern();
        this.volume = volume;
        this.price = price;
        this.time = time;
    }

    /** Reads a line with the columns type, id, name, volume, price, stock_time. */
    static Tick read(String line) {
        String[] c = line.split(",");
        return new Tick(c[0], c[2], Long.parseLong(c[3]), Double.parseDouble(c[4]), Long.parseLong(c[5]));
    }

    /** The same trade so many milliseconds later. */
    Tick later(long milliseconds) {
        return new Tick(type, name, volume, price, time + milliseconds);
    }

    public String getType() {
        return type;
    }

    public String getName() {
        return name;
    }

    public long getVolume() {
        return volume;
    }

    public double getPrice() {
        return price;
    }

    public long getTime() {
        return time;
    }
}
