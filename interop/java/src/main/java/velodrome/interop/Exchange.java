package velodrome.interop;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** One request and the answer that it has to get; a library's callbacks feed it, from any one thread at a time. */
final class Exchange {
    final String method;
    final String path;
    /** The request's body, or null. */
    final byte[] body;
    /** Completes with the answer's first data. */
    final CompletableFuture<Void> started = new CompletableFuture<>();
    /** Completes when the whole answer came and was right. */
    final CompletableFuture<Void> done = new CompletableFuture<>();
    /** What the library calls the stream; for its own peer only. */
    volatile Object handle;
    /** The expected answer, or null for the pattern without end. */
    private final byte[] want;
    private int status;
    private volatile int seen;

    private Exchange(String method, String path, byte[] body, byte[] want) {
        this.method = method;
        this.path = path;
        this.body = body;
        this.want = want;
        watch(0);
    }

    /** Fails the exchange if nothing more than `before` bytes comes in time. */
    private void watch(int before) {
        CompletableFuture.delayedExecutor(Contract.ANSWER_SECONDS, TimeUnit.SECONDS).execute(() -> {
            if (done.isDone()) return;
            if (seen == before) fail("silent for " + Contract.ANSWER_SECONDS + " s");
            else watch(seen);
        });
    }

    static Exchange get(String path, byte[] want) {
        return new Exchange("GET", path, null, want);
    }

    static Exchange endless() {
        return get("/endless", null);
    }

    static Exchange post(String path, byte[] body, byte[] want) {
        return new Exchange("POST", path, body, want);
    }

    /** The status as on the wire: `200` or `200 OK`. */
    void head(String line) {
        if (line == null || !line.matches("\\d{3}( .*)?")) fail("status line '" + line + "'");
        else status = Integer.parseInt(line.substring(0, 3));
    }

    void data(byte[] bytes, int length) {
        for (int i = 0; i < length; i++) {
            int at = seen + i;
            if (want != null && at >= want.length) {
                fail("more than " + want.length + " bytes");
                return;
            }
            byte right = want == null ? (byte) (at % Contract.MODULUS) : want[at];
            if (bytes[i] != right) {
                fail("byte " + at + " is " + (bytes[i] & 0xff) + ", not " + (right & 0xff));
                return;
            }
        }
        seen += length;
        if (length > 0) started.complete(null);
    }

    void end() {
        if (status != 200) fail(status == 0 ? "no status" : "status " + status);
        else if (want == null || seen != want.length) fail("ended early");
        else done.complete(null);
        started.completeExceptionally(new IllegalStateException(path + ": ended without data"));
    }

    void fail(String reason) {
        String progress = seen > 0 ? " after " + seen + " bytes" : "";
        IllegalStateException failure = new IllegalStateException(path + ": " + reason + progress);
        done.completeExceptionally(failure);
        started.completeExceptionally(failure);
    }
}
