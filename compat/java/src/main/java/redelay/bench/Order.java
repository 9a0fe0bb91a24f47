package redelay.bench;

import java.util.List;

/** The value of the benchmark of codecs. The counterpart of Order in benches/beside/src/order.rs. */
public class Order {
    public long orderId;
    public String customer;
    public String currency;
    public double total;
    public boolean paid;
    public List<Line> lines;

    public static class Line {
        public String item;
        public int quantity;
        public double price;

        public Line() {
        }

        Line(String item, int quantity, double price) {
            this.item = item;
            this.quantity = quantity;
            this.price = price;
        }
    }

    static Order example() {
        Order order = new Order();
        order.orderId = 4_711_000_815L;
        order.customer = "Grace Brewster Hopper";
        order.currency = "EUR";
        order.total = 61.25;
        order.paid = false;
        order.lines = List.of(new Line("coffee, ground, 500 g", 4, 8.75), new Line("mug, blue", 2, 13.125));
        return order;
    }
}
