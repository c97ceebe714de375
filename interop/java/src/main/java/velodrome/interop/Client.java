package velodrome.interop;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** The scenarios, over what a library's client has to offer: one connection, already open. */
abstract class Client {
    /** A scenario that the library has no means for. */
    static final class Cannot extends Exception {
        Cannot(String reason) {
            super(reason);
        }
    }

    private static final int LIMIT_MS = 40_000;

    /** Completes with the first push; its path was checked. */
    final CompletableFuture<Exchange> pushed = new CompletableFuture<>();

    /** Sends a request and its body; the answer goes to the exchange. */
    abstract void open(Exchange exchange) throws Exception;

    /** Resets a stream with CANCEL; called where its first data was, so it must not wait. */
    abstract void cancel(Exchange exchange);

    /** Sends GOAWAY and keeps the connection. */
    abstract void goAway() throws Exception;

    /** Whether GOAWAY came and no further stream can be opened; a library that does not refuse says so in `note`. */
    abstract boolean refuses() throws Exception;

    /** What `refuses` is worth. */
    String note() {
        return "further streams refused";
    }

    /** For a library's callback: a push came. Null: not one that was asked for. */
    final Exchange push(String path) {
        // Version 2's paths may be whole URLs.
        if (path == null || !path.replaceFirst("^https?://[^/]*", "").equals("/pushed")) {
            pushed.completeExceptionally(new IllegalStateException("pushed " + path));
            return null;
        }
        Exchange exchange = Exchange.get(path, Contract.pattern(0, Contract.PUSHED));
        pushed.complete(exchange);
        return exchange;
    }

    /** How a library makes its connection. */
    interface Connect {
        Client connect() throws Exception;
    }

    /** Runs one scenario and ends the process as the contract says. */
    static void fetch(String scenario, Connect connect) {
        Thread limit = new Thread(() -> {
            try {
                Thread.sleep(LIMIT_MS);
                exit(1, "fail no end after " + LIMIT_MS / 1000 + " s");
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        });
        limit.setDaemon(true);
        limit.start();
        try {
            exit(0, "ok " + connect.connect().run(scenario));
        } catch (Cannot e) {
            exit(3, "cannot " + e.getMessage());
        } catch (Throwable e) {
            Throwable cause = e instanceof ExecutionException && e.getCause() != null ? e.getCause() : e;
            exit(1, "fail " + (cause.getMessage() == null ? cause.toString() : cause.getMessage()));
        }
    }

    private static synchronized void exit(int code, String line) {
        System.out.println(line.replaceAll("\\s+", " "));
        System.out.flush();
        Runtime.getRuntime().halt(code);
    }

    private String run(String scenario) throws Exception {
        switch (scenario) {
            case "small":
                finish(Exchange.get("/small", Contract.SMALL));
                return Contract.SMALL.length + " bytes";
            case "get400k":
                finish(Exchange.get("/bytes/" + Contract.LARGE, Contract.pattern(0, Contract.LARGE)));
                return Contract.LARGE + " bytes";
            case "post400k":
                byte[] body = Contract.pattern(0, Contract.LARGE);
                finish(Exchange.post("/upload", body, Contract.receipt(body)));
                return body.length + " bytes sent";
            case "parallel100":
                return parallel();
            case "push":
                return push();
            case "cancel":
                return cancelled();
            case "goaway":
                return goneAway();
            case "goaway-client":
                return goingAway();
            default:
                throw new Cannot("nothing like " + scenario);
        }
    }

    private void finish(Exchange exchange) throws Exception {
        open(exchange);
        exchange.done.get();
    }

    private String parallel() throws Exception {
        List<Exchange> exchanges = new ArrayList<>();
        int total = 0;
        for (int i = 0; i < Contract.PARALLEL; i++) {
            int length = Contract.PARALLEL_BASE + i;
            Exchange exchange = Exchange.get("/bytes/" + length, Contract.pattern(0, length));
            open(exchange);
            exchanges.add(exchange);
            total += length;
        }
        for (Exchange exchange : exchanges) exchange.done.get();
        return total + " bytes";
    }

    private String push() throws Exception {
        finish(Exchange.get("/push", Contract.PUSHER));
        try {
            pushed.get(Contract.PUSH_SECONDS, TimeUnit.SECONDS).done.get();
        } catch (TimeoutException e) {
            throw new IllegalStateException("no push within " + Contract.PUSH_SECONDS + " s of its page");
        }
        return Contract.PUSHED + " bytes pushed";
    }

    private String cancelled() throws Exception {
        Exchange endless = Exchange.endless();
        CompletableFuture<Void> reset = endless.started.thenRun(() -> cancel(endless));
        open(endless);
        reset.get();
        finish(Exchange.get("/small", Contract.SMALL));
        return "cancelled, then /small";
    }

    private String goneAway() throws Exception {
        Exchange exchange = Exchange.get("/goaway", Contract.pattern(0, Contract.LARGE));
        open(exchange);
        exchange.started.get();
        while (!refuses()) {
            if (exchange.done.isDone()) {
                exchange.done.get();
                throw new IllegalStateException("no GOAWAY before the end of the body");
            }
            Thread.sleep(2);
        }
        exchange.done.get();
        return Contract.LARGE + " bytes past GOAWAY, " + note();
    }

    private String goingAway() throws Exception {
        Exchange exchange = Exchange.get("/bytes/" + Contract.HUGE, Contract.pattern(0, Contract.HUGE));
        open(exchange);
        exchange.started.get();
        goAway();
        exchange.done.get();
        return Contract.HUGE + " bytes, most of them after GOAWAY";
    }
}
