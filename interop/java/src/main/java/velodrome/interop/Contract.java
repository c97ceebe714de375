package velodrome.interop;

import java.io.IOException;
import java.util.zip.CRC32;

/** What every peer of the matrix agrees on; the contract itself is interop/README.md. */
final class Contract {
    /** Byte i of a body is i % MODULUS. */
    static final int MODULUS = 251;
    /** Bytes of the large bodies. */
    static final int LARGE = 400_000;
    /** Bytes of the body during which a client says GOAWAY: more than any peer's window, so that it is in flight then. */
    static final int HUGE = 30_000_000;
    /** Bytes of the pushed resource. */
    static final int PUSHED = 1_000;
    /** Bytes after which /endless gives up. */
    static final int ENDLESS_MAX = 64 << 20;
    static final byte[] SMALL = ascii("hello, spdy\n");
    static final byte[] PUSHER = ascii("pusher\n");
    /** Streams of `parallel100`; stream i asks for PARALLEL_BASE + i bytes. */
    static final int PARALLEL = 100;
    static final int PARALLEL_BASE = 5_000;
    /** Seconds that one answer may be silent: a peer that stalls is found before the whole run's time is up. */
    static final int ANSWER_SECONDS = 8;
    /** Seconds that a push may come after its page. */
    static final int PUSH_SECONDS = 8;
    /** Bytes that /goaway and /endless write at a time. */
    static final int STEP = 20_000;
    /** Pause between two writes of /goaway, so that its GOAWAY finds it in flight. */
    static final int STEP_MS = 10;

    private Contract() {}

    static byte[] ascii(String text) {
        return text.getBytes(java.nio.charset.StandardCharsets.US_ASCII);
    }

    /** The pattern's bytes `from`, …, `from + length - 1`. */
    static byte[] pattern(int from, int length) {
        byte[] bytes = new byte[length];
        for (int i = 0; i < length; i++) bytes[i] = (byte) ((from + i) % MODULUS);
        return bytes;
    }

    /** What /upload answers to a body: its length and its CRC-32/IEEE. */
    static byte[] receipt(byte[] body) {
        CRC32 crc = new CRC32();
        crc.update(body);
        return ascii(String.format("%d %08x", body.length, crc.getValue()));
    }

    /** The answer to a request that ends when its body does, or null: 404. The four others each peer writes itself. */
    static byte[] resource(String path, byte[] body) {
        if (path.equals("/small")) return SMALL;
        if (path.equals("/push")) return PUSHER;
        if (path.equals("/pushed")) return pattern(0, PUSHED);
        if (path.equals("/upload")) return receipt(body);
        if (path.matches("/bytes/\\d{1,8}")) return pattern(0, Integer.parseInt(path.substring("/bytes/".length())));
        return null;
    }

    /** Says where the server listens, and lets it live until standard input ends. */
    static void announce(int port) throws IOException {
        System.out.println("listening " + port);
        System.out.flush();
        while (System.in.read() >= 0) {
            // Whatever is said there, only its end matters.
        }
        Runtime.getRuntime().halt(0);
    }

    /** Says that the client has reset /endless. */
    static void cancelled() {
        System.out.println("cancelled");
        System.out.flush();
    }
}
