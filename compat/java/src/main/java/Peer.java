import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

import org.redisson.api.RedissonClient;

import redelay.compat.Client;
import redelay.compat.Commands;
import redelay.compat.NamedCodec;
import redelay.compat.ProtocolLoop;
import redelay.compat.UnknownCodecException;

/** {@code Peer <redis-url> <codec>}: the compatibility peer on Redisson. */
public final class Peer {
    private static final int FAILED = 1;
    private static final int WRONG_ARGUMENTS = 2;

    private Peer() {
    }

    public static void main(String[] args) {
        PrintStream answers = new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        // The output of libraries must not come between two answers.
        System.setOut(System.err);
        // A plain return is not enough: a thread that a library left running would keep the process alive.
        System.exit(run(args, answers));
    }

    private static int run(String[] args, PrintStream answers) {
        if (args.length != 2) {
            System.err.println("usage: Peer <redis-url> <codec>");
            return WRONG_ARGUMENTS;
        }
        NamedCodec codec;
        try {
            codec = NamedCodec.of(args[1]);
        } catch (UnknownCodecException e) {
            System.err.println("peer: " + e.getMessage());
            return WRONG_ARGUMENTS;
        }
        RedissonClient client;
        try {
            client = Client.connect(args[0], codec.redisson());
        } catch (RuntimeException e) {
            System.err.println("peer: cannot use " + args[0] + ": " + e);
            return FAILED;
        }
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        new ProtocolLoop(lines, answers, new Commands(client, codec), client::shutdown).run();
        return 0;
    }
}
