package com.example.shop;

import java.math.BigDecimal;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Date;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.Delayed;
import java.util.concurrent.TimeUnit;

/**
 * What Java services put into their queues: a value of each shape. In Rust, the same values are in compat/values, in shapes.rs, and
 * the classes below are in shop.rs. docs/java-classes.md shows both.
 */
public final class Shapes {
    private static final long WHEN = 1_709_210_096_789L;

    private final Map<String, Object> all = new TreeMap<>();

    private Shapes() {
        plainValues();
        objects();
        times();
        severalClasses();
        maps();
    }

    /** By name. */
    public static Map<String, Object> all() {
        return new Shapes().all;
    }

    private void plainValues() {
        all.put("01-string-id", "20240229123456789");
        all.put("02-json-string", "{\"orderNo\":\"SO-1001\",\"userId\":77}");
        all.put("03-long-id", 1_763_912_345_678_901_234L);
        all.put("04-int-id", 4711);
        all.put("22-list-long", new ArrayList<>(List.of(1001L, 1002L)));
        all.put("22-list-string", new ArrayList<>(List.of("a", "b")));
        all.put("22-list-own", new ArrayList<>(List.of(item())));
        all.put("29-bytes", new byte[] {1, 2, 3, (byte) 255});
        all.put("30-uuid", new UUID(0x1234567890abcdefL, 0x8234567890abcdefL));
        all.put("31-enum-root", RefundStatus.PAID);
        all.put("31-enum-body", Channel.BANK);
        all.put("32-date", new Date(WHEN));
        all.put("33-listof", List.of("a", "b", "c"));
        all.put("33-mapof", Map.of("orderId", 1001L));
        all.put("33-unmodifiable", Collections.unmodifiableMap(new HashMap<>(Map.of("orderId", 1001L))));
        all.put("34-localdatetime", LocalDateTime.of(2024, 2, 29, 12, 34, 56));
    }

    private void objects() {
        OrderTimeoutMessage message = new OrderTimeoutMessage();
        message.orderNo = "SO-1001";
        message.userId = 77L;
        message.quantity = 2;
        message.messageCreateTime = WHEN;
        all.put("05-pojo-boxed", message);
        LinkStats stats = new LinkStats();
        stats.fullShortUrl = "https://s.example/Ab3";
        stats.remoteAddr = "10.0.0.7";
        stats.os = "Android";
        stats.browser = "Chrome";
        stats.device = "Mobile";
        stats.network = "WIFI";
        stats.uv = "u-1";
        stats.uvFirstFlag = true;
        stats.uipFirstFlag = false;
        stats.currentDate = new Date(WHEN);
        all.put("06-pojo-strings-date", stats);
        SkuStockKey key = new SkuStockKey();
        key.sku = 9011L;
        key.activityId = 100_301L;
        all.put("07-pojo-two-longs", key);
        RefundTask refund = new RefundTask();
        refund.id = 5;
        refund.amount = new BigDecimal("199.90");
        refund.status = RefundStatus.AUDITED;
        refund.urgent = true;
        refund.retry = 3;
        all.put("09-pojo-bigdecimal-enum", refund);
        CancelMessage cancel = new CancelMessage();
        cancel.id = "c-1";
        cancel.sendTime = WHEN;
        cancel.orderId = 1001L;
        cancel.reason = "timeout";
        all.put("15-inheritance", cancel);
        all.put("20-record", new OrderExpired(1001L, "timeout", 2));
        Cart cart = new Cart();
        cart.userId = 77L;
        cart.items = new ArrayList<>(List.of(item(), new CartItem()));
        cart.items.get(1).sku = "sku-2";
        cart.coupons = new HashSet<>(Set.of("NEW10"));
        cart.ext = new HashMap<>(Map.of("src", "app"));
        cart.ids = new ArrayList<>(List.of(1L, 2L));
        all.put("21-nested-lists", cart);
        all.put("23-delayed-final-fields", new DelayedOrder("SO-1001", WHEN));
        PayQuery query = new PayQuery();
        query.payNo = "P-1";
        query.channel = Channel.BANK;
        query.delays = new int[] {5, 30, 300};
        all.put("25-enum-bodies-array", query);
        Inner inner = new Inner();
        inner.id = 5L;
        inner.name = "n";
        all.put("27-static-inner", inner);
        NonStatic nonStatic = new NonStatic();
        nonStatic.id = 5L;
        all.put("27-inner", nonStatic);
    }

    private void times() {
        PayTimeout timeout = new PayTimeout();
        timeout.orderId = 1001L;
        timeout.messageId = "m-1";
        timeout.expireTime = LocalDateTime.of(2024, 2, 29, 12, 34, 56, 789_000_000);
        timeout.day = LocalDate.of(2024, 2, 29);
        all.put("08-pojo-localdatetime", timeout);
        all.put("20-record-instant", new OrderExpiredAt(1001L, Instant.ofEpochMilli(WHEN)));
        OrderEntity entity = new OrderEntity();
        entity.id = 1_763_912_345_678_901_234L;
        entity.orderNo = "SO-1001";
        entity.memberId = 77L;
        entity.totalAmount = new BigDecimal("19.80");
        entity.payAmount = new BigDecimal("0");
        entity.status = 0;
        entity.deleted = false;
        entity.createTime = LocalDateTime.of(2024, 2, 29, 12, 34, 56);
        entity.remark = "备注 🚀";
        all.put("24-entity", entity);
    }

    private void severalClasses() {
        DelayMessage<String> text = new DelayMessage<>();
        text.topic = "order-close";
        text.data = "SO-1001";
        text.delay = 30L;
        text.addTime = new Date(WHEN);
        text.timeUnit = TimeUnit.MINUTES;
        all.put("10-generic-string", text);
        DelayMessage<CartItem> own = new DelayMessage<>();
        own.topic = "cart";
        own.data = item();
        own.delay = 30L;
        own.timeUnit = TimeUnit.SECONDS;
        own.retryCount = 1;
        all.put("11-generic-own", own);
        all.put("16-poly-root-email", email());
        all.put("16-poly-root-sms", sms());
        all.put("17-poly-field-email", envelope(email()));
        all.put("17-poly-field-sms", envelope(sms()));
        HttpStep http = new HttpStep();
        http.url = "http://x/y";
        http.timeoutMs = 500;
        SleepStep sleep = new SleepStep();
        sleep.millis = 2000;
        Workflow workflow = new Workflow();
        workflow.name = "w";
        workflow.steps = new ArrayList<>(List.of(http, sleep, http));
        workflow.tasks = new LinkedHashMap<>();
        workflow.tasks.put("mail", email());
        workflow.tasks.put("sms", sms());
        workflow.fallbacks = new BaseTask[] {sms(), null, email()};
        all.put("18-poly-list-map-array", workflow);
        all.put("19-object-own", envelope("cart", item()));
        all.put("19-object-long", envelope("id", 1001L));
        all.put("19-object-map", envelope("map", new HashMap<>(Map.of("k", 1L))));
    }

    @SuppressWarnings("serial")
    private void maps() {
        Map<String, Object> map = new HashMap<>();
        map.put("orderId", 1001L);
        map.put("status", 2);
        map.put("sn", "SO-1001");
        map.put("vip", true);
        all.put("12-map-string-object", map);
        Map<String, Object> own = new LinkedHashMap<>();
        own.put("type", "cart");
        own.put("item", item());
        own.put("when", new Date(WHEN));
        all.put("13-map-own-class", own);
        DelayJob job = new DelayJob();
        job.jobParams = new HashMap<>(Map.of("orderId", 1001));
        job.aClass = CartItem.class;
        all.put("14-map-and-class", job);
        all.put("26-anon-map", new HashMap<String, Object>() {
            {
                put("orderId", 1001L);
                put("sn", "SO-1001");
            }
        });
        Map<String, Object> json2 = new com.alibaba.fastjson2.JSONObject();
        json2.put("orderId", 1001L);
        json2.put("sn", "SO-1001");
        all.put("28-fastjson2-object", json2);
        Map<String, Object> json1 = new com.alibaba.fastjson.JSONObject(true);
        json1.putAll(json2);
        all.put("28-fastjson1-object", json1);
    }

    private static CartItem item() {
        CartItem item = new CartItem();
        item.sku = "sku-1";
        item.num = 2;
        item.price = new BigDecimal("9.90");
        return item;
    }

    private static EmailTask email() {
        EmailTask email = new EmailTask();
        email.taskId = "t-1";
        email.executeAt = WHEN;
        email.to = "a@example.com";
        email.subject = "hi";
        return email;
    }

    private static SmsTask sms() {
        SmsTask sms = new SmsTask();
        sms.taskId = "t-2";
        sms.executeAt = 1_709_210_097_000L;
        sms.phone = "+4930123";
        sms.template = 12;
        return sms;
    }

    private static TaskEnvelope envelope(BaseTask task) {
        TaskEnvelope envelope = new TaskEnvelope();
        envelope.queueName = "q";
        envelope.task = task;
        return envelope;
    }

    private static ObjEnvelope envelope(String type, Object payload) {
        ObjEnvelope envelope = new ObjEnvelope();
        envelope.type = type;
        envelope.payload = payload;
        return envelope;
    }

    public static class Inner {
        public Long id;
        public String name;
    }

    public class NonStatic {
        public Long id;
    }
}

class OrderTimeoutMessage {
    String orderNo;
    Long userId;
    Long activityId;
    Integer quantity;
    Long messageCreateTime;
}

class LinkStats {
    String fullShortUrl;
    String remoteAddr;
    String os;
    String browser;
    String device;
    String network;
    String uv;
    Boolean uvFirstFlag;
    Boolean uipFirstFlag;
    String keys;
    Date currentDate;
}

class SkuStockKey {
    Long sku;
    Long activityId;
}

class PayTimeout {
    Long orderId;
    String messageId;
    LocalDateTime expireTime;
    LocalDate day;
}

class RefundTask {
    long id;
    BigDecimal amount;
    RefundStatus status;
    boolean urgent;
    int retry;
}

enum RefundStatus { CREATED, AUDITED, PAID }

class DelayMessage<T> {
    String topic;
    T data;
    Long delay;
    Date addTime;
    TimeUnit timeUnit;
    int retryCount;
}

@SuppressWarnings("rawtypes")
class DelayJob {
    Map jobParams;
    Class aClass;
}

class BaseMessage {
    String id;
    Long sendTime;
}

class CancelMessage extends BaseMessage {
    Long orderId;
    String reason;
}

abstract class BaseTask {
    String taskId;
    long executeAt;
}

class EmailTask extends BaseTask {
    String to;
    String subject;
}

class SmsTask extends BaseTask {
    String phone;
    Integer template;
}

class TaskEnvelope {
    String queueName;
    BaseTask task;
}

interface Step {
}

class HttpStep implements Step {
    String url;
    int timeoutMs;
}

class SleepStep implements Step {
    long millis;
}

class Workflow {
    String name;
    List<Step> steps;
    Map<String, BaseTask> tasks;
    BaseTask[] fallbacks;
}

class ObjEnvelope {
    String type;
    Object payload;
}

record OrderExpired(Long orderId, String reason, int attempt) {
}

record OrderExpiredAt(Long orderId, Instant at) {
}

class CartItem {
    String sku;
    Integer num;
    BigDecimal price;
}

class Cart {
    Long userId;
    List<CartItem> items;
    Set<String> coupons;
    Map<String, String> ext;
    List<Long> ids;
}

class DelayedOrder implements Delayed {
    final String orderId;
    final long expire;
    private transient int tries = 5;

    DelayedOrder() {
        this(null, 0);
    }

    DelayedOrder(String orderId, long expire) {
        this.orderId = orderId;
        this.expire = expire;
    }

    @Override
    public long getDelay(TimeUnit unit) {
        return tries;
    }

    @Override
    public int compareTo(Delayed other) {
        return 0;
    }
}

class OrderEntity {
    Long id;
    String orderNo;
    Long memberId;
    BigDecimal totalAmount;
    BigDecimal payAmount;
    Integer status;
    Boolean deleted;
    LocalDateTime createTime;
    LocalDateTime updateTime;
    LocalDateTime payTime;
    String remark;
}

enum Channel {
    WX,
    ALI { @Override String pay() { return "a"; } },
    BANK { @Override String pay() { return "b"; } };

    String pay() {
        return "w";
    }
}

class PayQuery {
    String payNo;
    Channel channel;
    Optional<String> note = Optional.empty();
    int[] delays;
}
