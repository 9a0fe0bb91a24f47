package redelay.compat;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import java.util.stream.Stream;

import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.Codec;
import org.redisson.config.ClusterServersConfig;
import org.redisson.config.Config;
import org.redisson.config.SentinelServersConfig;
import org.redisson.config.SingleServerConfig;

/** Connects with Redisson's defaults, except for settings that would slow down the start of the peer. */
public final class Client {
    /** System property: a prefix that a NameMapper adds to every name. */
    private static final String MAPPER = "redelay.mapper";
    /** Milliseconds: a reply or a subscription takes longer than Redisson's 3 s on a busy machine. */
    private static final int PATIENCE_MS = 30_000;

    private Client() {
    }

    /**
     * URLs as redelay has them: one server ({@code redis://}), {@code redis-cluster://[user:password@]host:port,...} or
     * {@code redis-sentinel://[user:password@]host:port,.../master[/database]}.
     */
    public static RedissonClient connect(String url, Codec codec) {
        Config config = new Config().setCodec(codec);
        Object servers = switch (url.substring(0, Math.max(0, url.indexOf("://")))) {
            case "redis-cluster" -> cluster(config, new Servers(url));
            case "redis-sentinel" -> sentinels(config, new Servers(url));
            default -> single(config, url);
        };
        String prefix = System.getProperty(MAPPER);
        if (prefix != null) {
            setPrefix(config, servers, prefix);
        }
        return Redisson.create(config);
    }

    // Fewer connections at the start: the pools still grow to Redisson's default sizes. Cluster and sentinels keep
    // the default timeout, because a call to a frozen master ends with it.
    private static SingleServerConfig single(Config config, String url) {
        return config.useSingleServer()
                .setAddress(url)
                .setConnectionMinimumIdleSize(2)
                .setSubscriptionConnectionMinimumIdleSize(1)
                .setTimeout(PATIENCE_MS);
    }

    private static ClusterServersConfig cluster(Config config, Servers servers) {
        return config.useClusterServers()
                .addNodeAddress(servers.addresses)
                .setUsername(servers.user)
                .setPassword(servers.password)
                .setMasterConnectionMinimumIdleSize(2)
                .setSlaveConnectionMinimumIdleSize(2)
                .setSubscriptionConnectionMinimumIdleSize(1);
    }

    private static SentinelServersConfig sentinels(Config config, Servers servers) {
        String[] path = servers.path.split("/");
        return config.useSentinelServers()
                .addSentinelAddress(servers.addresses)
                .setMasterName(path[0])
                .setDatabase(path.length > 1 ? Integer.parseInt(path[1]) : 0)
                .setUsername(servers.user)
                .setPassword(servers.password)
                .setMasterConnectionMinimumIdleSize(2)
                .setSlaveConnectionMinimumIdleSize(2)
                .setSubscriptionConnectionMinimumIdleSize(1);
    }

    /** The parts of a URL of several servers. */
    private static final class Servers {
        final String[] addresses;
        final String user;
        final String password;
        final String path;

        Servers(String url) {
            String rest = url.substring(url.indexOf("://") + 3);
            int at = rest.lastIndexOf('@');
            String[] login = at < 0 ? new String[0] : rest.substring(0, at).split(":", 2);
            user = login.length < 1 || login[0].isEmpty() ? null : decoded(login[0]);
            password = login.length < 2 ? null : decoded(login[1]);
            String[] hosts = rest.substring(at + 1).split("/", 2);
            addresses = Stream.of(hosts[0].split(",")).map(host -> "redis://" + host).toArray(String[]::new);
            path = hosts.length < 2 ? "" : hosts[1];
        }

        private static String decoded(String text) {
            return URLDecoder.decode(text.replace("+", "%2B"), StandardCharsets.UTF_8);
        }
    }

    /**
     * By reflection, because 4.x moved NameMapper to another package, and its setter from the configuration of the server to
     * the whole configuration (the old one logs a warning).
     */
    private static void setPrefix(Config config, Object servers, String prefix) {
        Optional<Method> since4 = nameMapperSetter(config);
        Method setter = since4.or(() -> nameMapperSetter(servers))
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
            setter.invoke(since4.isPresent() ? config : servers,
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
