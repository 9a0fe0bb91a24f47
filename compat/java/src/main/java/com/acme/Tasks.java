package com.acme;

import java.math.BigDecimal;
import java.util.List;
import java.util.Map;

import com.fasterxml.jackson.annotation.JsonSubTypes;
import com.fasterxml.jackson.annotation.JsonTypeInfo;

/** Several classes in one place: below a base class, an interface, {@code Object}, or by the names of Jackson's annotations. */
public final class Tasks {
    private Tasks() {
    }

    public abstract static class Task {
        public String id;
    }

    public static class Email extends Task {
        public String to;
        public Task next;
    }

    public static final class Sms extends Task {
        public Integer template;
        public BigDecimal cost;
    }

    /** Below a class that is not at the top. */
    public abstract static class Slow extends Task {
        public long millis;
    }

    public static class Letter extends Slow {
        public List<String> lines;
    }

    public interface Step {
    }

    public record Wait(long millis, String why) implements Step {
    }

    public enum Stop implements Step {
        NOW, LATER
    }

    public enum Retry implements Step {
        ONCE, OFTEN {
        }
    }

    public static class Go implements Step {
        public int speed;
    }

    public static class Job {
        public Task task;
        public List<Task> tasks;
        public Map<String, Task> byName;
        public Task[] array;
        public Step step;
        public List<Step> steps;
        public Step[] stepArray;
        public Object any;
        public List<Object> anys;
        public Map<String, Object> props;
    }

    /** A record's list and map: Kryo does not know what is in them. */
    public record Batch(List<Task> tasks, Map<String, Task> byName, Task[] array) {
    }

    @JsonTypeInfo(use = JsonTypeInfo.Id.NAME, property = "type")
    @JsonSubTypes({@JsonSubTypes.Type(value = Card.class, name = "card"), @JsonSubTypes.Type(value = Cash.class, name = "cash")})
    public abstract static class Payment {
        public BigDecimal amount;
    }

    public static class Card extends Payment {
        public String number;
    }

    public static final class Cash extends Payment {
        public Long coins;
    }

    @JsonTypeInfo(use = JsonTypeInfo.Id.NAME, include = JsonTypeInfo.As.WRAPPER_OBJECT)
    @JsonSubTypes({@JsonSubTypes.Type(value = Circle.class, name = "circle"), @JsonSubTypes.Type(value = Dot.class, name = "dot")})
    public interface Shape {
    }

    public static class Circle implements Shape {
        public BigDecimal radius;
    }

    public static class Dot implements Shape {
    }

    @JsonTypeInfo(use = JsonTypeInfo.Id.NAME, include = JsonTypeInfo.As.WRAPPER_ARRAY)
    @JsonSubTypes({@JsonSubTypes.Type(value = Up.class, name = "up"), @JsonSubTypes.Type(value = Down.class, name = "down")})
    public interface Move {
    }

    public static class Up implements Move {
        public BigDecimal by;
    }

    public static class Down implements Move {
        public List<Long> to;
    }

    public static class Payments {
        public Payment one;
        public List<Payment> list;
        public Map<String, Payment> map;
        public Payment[] array;
        public Object open;
    }

    public static class Shapes {
        public Shape one;
        public List<Shape> list;
        public Map<String, Shape> map;
        public Shape[] array;
        public Object open;
    }

    public static class Moves {
        public Move one;
        public List<Move> list;
        public Map<String, Move> map;
        public Move[] array;
        public Object open;
    }
}
