package redelay.compat;

import static redelay.compat.Samples.list;
import static redelay.compat.Samples.map;

import java.math.BigDecimal;
import java.util.Date;
import java.util.LinkedHashMap;
import java.util.Map;

import com.acme.Tasks.Batch;
import com.acme.Tasks.Card;
import com.acme.Tasks.Cash;
import com.acme.Tasks.Circle;
import com.acme.Tasks.Dot;
import com.acme.Tasks.Down;
import com.acme.Tasks.Email;
import com.acme.Tasks.Go;
import com.acme.Tasks.Job;
import com.acme.Tasks.Letter;
import com.acme.Tasks.Move;
import com.acme.Tasks.Moves;
import com.acme.Tasks.Payment;
import com.acme.Tasks.Payments;
import com.acme.Tasks.Retry;
import com.acme.Tasks.Shape;
import com.acme.Tasks.Shapes;
import com.acme.Tasks.Sms;
import com.acme.Tasks.Step;
import com.acme.Tasks.Stop;
import com.acme.Tasks.Task;
import com.acme.Tasks.Up;
import com.acme.Tasks.Wait;

/** Values of several classes in one place: a field, a list, a map, an array, and the payload itself. */
final class Classes {
    private Classes() {
    }

    static Map<String, Object> samples() {
        Map<String, Object> samples = new LinkedHashMap<>();
        Task email = email("e", null);
        Task sms = sms("s", "1.50");
        Task letter = letter("l", "x");
        samples.put("task.email", email("e", email("f", sms)));
        samples.put("task.sms", sms);
        samples.put("task.letter", letter);
        job(samples, "null", job -> { });
        job(samples, "field", job -> job.task = sms);
        job(samples, "list.none", job -> job.tasks = list());
        job(samples, "list.null", job -> job.tasks = list((Task) null));
        job(samples, "list.same", job -> job.tasks = list(sms, sms("t", null)));
        job(samples, "list.same.null", job -> job.tasks = list(sms, null, sms("t", "2")));
        job(samples, "list.other", job -> job.tasks = list(sms, email, letter, sms));
        job(samples, "list.other.null", job -> job.tasks = list(null, sms, email, null));
        job(samples, "map", job -> job.byName = map("a", sms, "b", email));
        job(samples, "array.none", job -> job.array = new Task[] {});
        job(samples, "array", job -> job.array = new Task[] {sms, null, email});
        job(samples, "step.record", job -> job.step = new Wait(5, "w"));
        job(samples, "step.enum", job -> job.step = Stop.LATER);
        job(samples, "step.body", job -> job.step = Retry.OFTEN);
        job(samples, "step.nobody", job -> job.step = Retry.ONCE);
        job(samples, "step.class", job -> job.step = go(7));
        job(samples, "steps", job -> job.steps = list(new Wait(5, null), Stop.NOW, Retry.OFTEN, go(1), Retry.ONCE));
        job(samples, "steps.records", job -> job.steps = list(new Wait(5, null), new Wait(6, "w")));
        job(samples, "steps.enums", job -> job.steps = list(Stop.NOW, null, Stop.LATER));
        job(samples, "steps.bodies", job -> job.steps = list(Retry.OFTEN, null, Retry.OFTEN));
        job(samples, "stepArray", job -> job.stepArray = new Step[] {new Wait(5, "w"), null, Stop.NOW, Retry.OFTEN});
        job(samples, "all", job -> {
            job.task = email("e", sms);
            job.tasks = list(sms, email);
            job.byName = map("a", letter);
            job.array = new Task[] {letter};
            job.step = go(1);
            job.steps = list(go(2), new Wait(1, "w"));
            job.any = email;
        });
        Object[] anys = {email, "text", 1, 2L, 1.5, true, 'c', new Date(5), new BigDecimal("1.50"), Stop.NOW, Retry.OFTEN,
            new Wait(5, "w"), list("a"), map("k", sms), new byte[] {1}, new Task[] {sms}, new int[] {1, 2}};
        for (int at = 0; at < anys.length; at++) {
            Object any = anys[at];
            job(samples, "any." + at, job -> job.any = any);
        }
        job(samples, "anys", job -> job.anys = list(anys));
        job(samples, "anys.dates", job -> job.anys = list(new Date(5), null, new Date(6)));
        job(samples, "anys.longs", job -> job.anys = list(5L, null));
        job(samples, "anys.texts", job -> job.anys = list("a", null));
        job(samples, "props", job -> {
            job.props = new LinkedHashMap<>();
            for (Object any : anys) {
                job.props.put("p" + job.props.size(), any);
            }
        });
        samples.put("batch.null", new Batch(null, null, null));
        samples.put("batch", new Batch(list(sms, email), map("a", sms), new Task[] {email, sms}));
        samples.put("batch.same", new Batch(list(sms, null), map("a", sms), new Task[] {}));
        samples.put("tasks.same", list(sms, sms));
        samples.put("tasks", list(sms, null, email));
        samples.put("tasks.map", map("a", sms, "b", email));
        samples.put("tasks.array", new Task[] {sms, null});
        samples.put("tasks.array.none", new Task[] {});
        named(samples);
        Mappers.annotated(samples);
        return samples;
    }

    private static void named(Map<String, Object> samples) {
        samples.put("payment.card", card("1.50"));
        samples.put("payment.cash", cash(5L));
        Payments payments = new Payments();
        samples.put("payments.null", payments);
        payments = new Payments();
        payments.one = card("12345678901234567.89");
        payments.list = list(cash(1L), null, card("9.90"));
        payments.map = map("k", cash(2L), "l", card("0.10"));
        payments.array = new Payment[] {cash(3L)};
        payments.open = cash(4L);
        samples.put("payments", payments);
        samples.put("payments.list", list(card("1"), cash(1L)));
        samples.put("shape.circle", circle("1.50"));
        Shapes shapes = new Shapes();
        shapes.one = circle("12345678901234567.89");
        shapes.list = list(new Dot(), null, circle("9.90"));
        shapes.map = map("k", circle("1"), "l", circle("2"));
        shapes.array = new Shape[] {circle("3")};
        shapes.open = circle("4");
        samples.put("shapes", shapes);
        samples.put("move.up", up("1.50"));
        Moves moves = new Moves();
        moves.one = up("12345678901234567.89");
        moves.list = list(down(1L), null, up("9.90"));
        moves.map = map("k", up("1"), "l", down(2L));
        moves.array = new Move[] {up("3")};
        moves.open = down(4L);
        samples.put("moves", moves);
    }

    private static void job(Map<String, Object> samples, String name, java.util.function.Consumer<Job> fill) {
        Job job = new Job();
        fill.accept(job);
        samples.put("job." + name, job);
    }

    private static Email email(String id, Task next) {
        Email email = new Email();
        email.id = id;
        email.to = "a@b.c";
        email.next = next;
        return email;
    }

    private static Sms sms(String id, String cost) {
        Sms sms = new Sms();
        sms.id = id;
        sms.template = 12;
        sms.cost = cost == null ? null : new BigDecimal(cost);
        return sms;
    }

    private static Letter letter(String id, String... lines) {
        Letter letter = new Letter();
        letter.id = id;
        letter.millis = 5;
        letter.lines = list(lines);
        return letter;
    }

    private static Go go(int speed) {
        Go go = new Go();
        go.speed = speed;
        return go;
    }

    private static Card card(String amount) {
        Card card = new Card();
        card.amount = new BigDecimal(amount);
        card.number = "4711";
        return card;
    }

    private static Cash cash(Long coins) {
        Cash cash = new Cash();
        cash.coins = coins;
        return cash;
    }

    private static Circle circle(String radius) {
        Circle circle = new Circle();
        circle.radius = new BigDecimal(radius);
        return circle;
    }

    private static Up up(String by) {
        Up up = new Up();
        up.by = new BigDecimal(by);
        return up;
    }

    private static Down down(Long to) {
        Down down = new Down();
        down.to = list(to);
        return down;
    }
}
