package redelay.compat;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintStream;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/** Reads one command per line and writes one answer per line, in order. */
public final class ProtocolLoop {
    /** The time for which a command may still wait after the end of the input. A take() would wait for ever. */
    private static final Duration GRACE = Duration.ofSeconds(5);

    /** Redisson 3.21.0 waits 15 s for the reply to an interrupted take(). */
    private static final Duration SHUTDOWN_LIMIT = Duration.ofSeconds(2);

    private final BufferedReader lines;
    private final PrintStream answers;
    private final Commands commands;
    private final Runnable shutdown;
    private final ExecutorService worker = Executors.newSingleThreadExecutor();

    public ProtocolLoop(BufferedReader lines, PrintStream answers, Commands commands, Runnable shutdown) {
        this.lines = lines;
        this.answers = answers;
        this.commands = commands;
        this.shutdown = shutdown;
    }

    /** Runs until {@code quit} or the end of the input. */
    public void run() {
        answer("ready");
        boolean quit = readCommands();
        try {
            finishCommands();
            shutDown();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        if (quit) {
            answer("ok");
        }
    }

    /** Commands run on the worker thread, so that this thread sees the end of the input while one of them waits. */
    private boolean readCommands() {
        try {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (line.equals("quit")) {
                    return true;
                }
                String command = line;
                worker.execute(() -> answer(answerTo(command)));
            }
        } catch (IOException e) {
            System.err.println("peer: cannot read on: " + e);
        }
        return false;
    }

    private void finishCommands() throws InterruptedException {
        worker.shutdown();
        if (!worker.awaitTermination(GRACE.toMillis(), TimeUnit.MILLISECONDS)) {
            worker.shutdownNow();
            worker.awaitTermination(SHUTDOWN_LIMIT.toMillis(), TimeUnit.MILLISECONDS);
        }
    }

    private void shutDown() throws InterruptedException {
        Thread closing = new Thread(shutdown, "shutdown");
        closing.setDaemon(true);
        closing.start();
        closing.join(SHUTDOWN_LIMIT.toMillis());
    }

    private String answerTo(String line) {
        String[] fields = line.split("\t", -1);
        try {
            return commands.run(fields[0], Arrays.copyOfRange(fields, 1, fields.length));
        } catch (Throwable e) {
            // Errors too: a codec throws one for a class that it cannot load. The peer continues.
            return Failure.line(e);
        }
    }

    private void answer(String line) {
        answers.print(line + '\n');
        answers.flush();
    }
}
