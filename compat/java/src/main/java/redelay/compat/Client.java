package redelay.compat;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Optional;
import java.util.stream.Stream;

import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.Codec;
import org.redisson.config.Config;
import org.redisson.config.SingleServerConfig;

/** Connects to one server with Redisson's defaults, except for settings that would slow down the start of the peer. */
public final class Client {
    /** System property: a prefix that a NameMapper adds to every name. */
    private static final String MAPPER = "redelay.mapper";

    private Client() {
    }

    public static RedissonClient connect(String url, Codec codec) {
        Config config = new Config().setCodec(codec);
        // Fewer connections at the start. The pools still grow to Redisson's default sizes.
        SingleServerConfig server = config.useSingleServer()
                .setAddress(url)
                .setConnectionMinimumIdleSize(2)
                .setSubscriptionConnectionMinimumIdleSize(1);
        String prefix = System.getProperty(MAPPER);
        if (prefix != null) {
            setPrefix(config, server, prefix);
        }
        return Redisson.create(config);
    }

    /**
     * By reflection, because 4.x moved NameMapper to another package, and its setter from the configuration of the server to
     * the whole configuration (the old one logs a warning).
     */
    private static void setPrefix(Config config, SingleServerConfig server, String prefix) {
        Optional<Method> since4 = nameMapperSetter(config);
        Method setter = since4.or(() -> nameMapperSetter(server))
                .orElseThrow(() -> new IllegalStateException("this Redisson has no setNameMapper"));
        Class<?> nameMapper = setter.getParameterTypes()[0];
        InvocationHandler mapper = (self, method, args) -> switch (method.getName()) {
            case "map" -> prefix + args[0];
            case "unmap" -> ((String) args[0]).substring(prefix.length());
            case "toString" -> "prefix " + prefix;
            case "hashCode" -> System.identityHashCode(self);
            case "equals" -> self == args[0];
            default -> throw new UnsupportedOperationException(method.toString());
        };
        try {
            setter.invoke(since4.isPresent() ? config : server,
                    Proxy.newProxyInstance(nameMapper.getClassLoader(), new Class<?>[] {nameMapper}, mapper));
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("cannot set the NameMapper", e);
        }
    }

    private static Optional<Method> nameMapperSetter(Object settings) {
        return Stream.of(settings.getClass().getMethods())
                .filter(method -> method.getName().equals("setNameMapper"))
                .findFirst();
    }
}
