package com.example.shop;

import java.io.Serializable;
import java.math.BigDecimal;
import java.time.*;
import java.util.*;
import java.util.concurrent.TimeUnit;

// The classes of the vectors `shapes-*`: what their payloads depend on.

class BaseMessage implements Serializable { static final long serialVersionUID = 1L; String id; Long sendTime; }
abstract class BaseTask implements Serializable { static final long serialVersionUID = 1L; String taskId; long executeAt; }
class CancelMessage extends BaseMessage { static final long serialVersionUID = 1L; Long orderId; String reason; }
class Cart implements Serializable { static final long serialVersionUID = 1L; Long userId; List<CartItem> items; Set<String> coupons; Map<String,String> ext; List<Long> ids; }
class CartItem implements Serializable { static final long serialVersionUID = 1L; String sku; Integer num; BigDecimal price; }
enum Channel { WX, ALI { String n(){return "a";} }, BANK { String n(){return "b";} }; String n(){return "w";} }
class DelayJob implements Serializable { static final long serialVersionUID = 1L; Map jobParams; Class aClass; }
class DelayMessage<T> implements Serializable { static final long serialVersionUID = 1L; String topic; T data; Long delay; Date addTime; TimeUnit timeUnit; int retryCount; }
class DelayedOrder implements Serializable { static final long serialVersionUID = 1L; final String orderId = null; final long expire = System.nanoTime(); private transient int cache = 5; }
class EmailTask extends BaseTask { static final long serialVersionUID = 1L; String to; String subject; }
class HttpStep implements Step, Serializable { static final long serialVersionUID = 1L; String url; int timeoutMs; }
class LinkStats implements Serializable { static final long serialVersionUID = 1L; String fullShortUrl; String remoteAddr; String os; String browser; String device; String network; String uv; Boolean uvFirstFlag; Boolean uipFirstFlag; String keys; Date currentDate; }
class ObjEnvelope implements Serializable { static final long serialVersionUID = 1L; String type; Object payload; }
class OrderEntity implements Serializable { static final long serialVersionUID = 1L; Long id; String orderNo; Long memberId; BigDecimal totalAmount; BigDecimal payAmount; Integer status; Boolean deleted; LocalDateTime createTime; LocalDateTime updateTime; LocalDateTime payTime; String remark; }
record OrderExpired(Long orderId, String reason, int attempt) {}
record OrderExpiredAt(Long orderId, Instant at) {}
class OrderTimeoutMessage implements Serializable { String orderNo; Long userId; Long activityId; Integer quantity; Long messageCreateTime; }
class PayQuery implements Serializable { static final long serialVersionUID = 1L; String payNo; Channel channel; Optional<String> note=Optional.empty(); int[] delays; }
class PayTimeout implements Serializable { static final long serialVersionUID = 1L; Long orderId; String messageId; LocalDateTime expireTime; LocalDate day; }
enum RefundStatus { CREATED, AUDITED, PAID }
class RefundTask implements Serializable { static final long serialVersionUID = 1L; long id; BigDecimal amount; RefundStatus status; boolean urgent; int retry; }
class Shapes {
    public static class Inner { Long id; String name; }
    public class NonStatic { Long id; }
}
class SkuStockKey implements Serializable { static final long serialVersionUID = 1L; Long sku; Long activityId; }
class SleepStep implements Step, Serializable { static final long serialVersionUID = 1L; long millis; }
class SmsTask extends BaseTask { static final long serialVersionUID = 1L; String phone; Integer template; }
interface Step {}
class TaskEnvelope implements Serializable { static final long serialVersionUID = 1L; String queueName; BaseTask task; }
class Workflow implements Serializable { static final long serialVersionUID = 1L; String name; List<Step> steps; Map<String,BaseTask> tasks; BaseTask[] fallbacks; }
