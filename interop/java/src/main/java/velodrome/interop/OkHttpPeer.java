package velodrome.interop;

import com.squareup.okhttp.Protocol;
import com.squareup.okhttp.internal.framed.ErrorCode;
import com.squareup.okhttp.internal.framed.FramedConnection;
import com.squareup.okhttp.internal.framed.FramedStream;
import com.squareup.okhttp.internal.framed.Header;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLSocket;
import okio.Buffer;
import okio.BufferedSink;
import okio.BufferedSource;
import okio.Okio;

/** OkHttp 2.7: `FramedConnection`, the SPDY below its HTTP client (and below its MockWebServer); client and server. */
public final class OkHttpPeer {
    private OkHttpPeer() {}

    public static void main(String[] arguments) throws Exception {
        Options options = Options.parse(arguments, Set.of("3.1"));
        if (options.verb.equals("serve")) serve(options);
        else Client.fetch(options.scenario, () -> connect(options));
    }

    private static Socket secured(Socket socket, SSLContext tls, boolean client, Options options) throws IOException {
        SSLSocket secure = (SSLSocket) tls.getSocketFactory().createSocket(socket, "127.0.0.1", socket.getPort(), true);
        secure.setUseClientMode(client);
        secure.setSSLParameters(Tls.alpn(secure.getSSLParameters(), options.protocol()));
        secure.startHandshake();
        Tls.require(secure.getApplicationProtocol(), options.protocol());
        return secure;
    }

    private static String header(List<Header> headers, String name) {
        for (Header header : headers) {
            if (header.name.utf8().equals(name)) return header.value.utf8();
        }
        return null;
    }

    private static void serve(Options options) throws Exception {
        SSLContext tls = options.tls ? Tls.server(options.cert, options.key) : null;
        ServerSocket listener = new ServerSocket(0, 50, InetAddress.getByName("127.0.0.1"));
        Thread accepting = new Thread(() -> {
            while (true) {
                try {
                    Socket socket = listener.accept();
                    socket.setTcpNoDelay(true);
                    if (tls != null) socket = secured(socket, tls, false, options);
                    new FramedConnection.Builder(false).socket(socket).protocol(Protocol.SPDY_3)
                        .listener(new Server()).build().sendConnectionPreface();
                } catch (IOException e) {
                    System.err.println("connection refused: " + e);
                }
            }
        });
        accepting.setDaemon(true);
        accepting.start();
        Contract.announce(listener.getLocalPort());
    }

    private static final class Server extends FramedConnection.Listener {
        @Override public void onStream(FramedStream stream) throws IOException {
            String path = header(stream.getRequestHeaders(), ":path");
            byte[] request = Okio.buffer(stream.getSource()).readByteArray();
            switch (path) {
                case "/endless" -> endless(stream);
                case "/goaway" -> goAway(stream);
                default -> {
                    byte[] body = Contract.resource(path, request);
                    reply(stream, body == null ? "404 Not Found" : "200 OK");
                    try (BufferedSink sink = Okio.buffer(stream.getSink())) {
                        if (body != null) sink.write(body);
                    }
                }
            }
        }

        private static void reply(FramedStream stream, String status) throws IOException {
            stream.reply(List.of(new Header(":status", status), new Header(":version", "HTTP/1.1")), true);
        }

        private static void goAway(FramedStream stream) throws IOException {
            stream.getConnection().shutdown(ErrorCode.NO_ERROR);
            reply(stream, "200 OK");
            try (BufferedSink sink = Okio.buffer(stream.getSink())) {
                for (int at = 0; at < Contract.LARGE; at += Contract.STEP) {
                    sink.write(Contract.pattern(at, Contract.STEP)).flush();
                    pause(Contract.STEP_MS);
                }
            }
        }

        private static void pause(int milliseconds) {
            try {
                Thread.sleep(milliseconds);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }

        private static void endless(FramedStream stream) throws IOException {
            reply(stream, "200 OK");
            BufferedSink sink = Okio.buffer(stream.getSink());
            try {
                for (int at = 0; at < Contract.ENDLESS_MAX; at += Contract.STEP) {
                    sink.write(Contract.pattern(at, Contract.STEP)).flush();
                }
                sink.close();
            } catch (IOException e) {
                // The stream knows why it ended, a moment after whoever writes to it was woken.
                for (int i = 0; i < 100 && stream.getErrorCode() == null; i++) pause(Contract.STEP_MS);
                if (stream.getErrorCode() == ErrorCode.CANCEL) Contract.cancelled();
            }
        }
    }

    private static Client connect(Options options) throws Exception {
        Socket socket = new Socket("127.0.0.1", options.port);
        socket.setTcpNoDelay(true);
        if (options.tls) socket = secured(socket, Tls.client(), true, options);
        return new OkHttpClient(socket);
    }

    private static final class OkHttpClient extends Client {
        private final FramedConnection connection;

        OkHttpClient(Socket socket) throws IOException {
            connection = new FramedConnection.Builder(true).socket(socket).protocol(Protocol.SPDY_3)
                .listener(new FramedConnection.Listener() {
                    @Override public void onStream(FramedStream stream) throws IOException {
                        List<Header> headers = stream.getRequestHeaders();
                        Exchange exchange = push(header(headers, ":path"));
                        if (exchange == null) {
                            stream.close(ErrorCode.REFUSED_STREAM);
                            return;
                        }
                        exchange.head(header(headers, ":status"));
                        read(stream, exchange);
                    }
                }).build();
            connection.sendConnectionPreface();
        }

        private FramedStream request(String method, String path, boolean body) throws IOException {
            List<Header> headers = new ArrayList<>();
            headers.add(new Header(":method", method));
            headers.add(new Header(":path", path));
            headers.add(new Header(":version", "HTTP/1.1"));
            headers.add(new Header(":host", "127.0.0.1"));
            headers.add(new Header(":scheme", "http"));
            return connection.newStream(headers, body, true);
        }

        @Override void open(Exchange exchange) throws IOException {
            FramedStream stream = request(exchange.method, exchange.path, exchange.body != null);
            exchange.handle = stream;
            start(() -> {
                exchange.head(header(stream.getResponseHeaders(), ":status"));
                read(stream, exchange);
            }, exchange);
            if (exchange.body == null) return;
            start(() -> {
                try (BufferedSink sink = Okio.buffer(stream.getSink())) {
                    sink.write(exchange.body);
                }
            }, exchange);
        }

        /** What may block on a stream, as all of OkHttp's input and output does. */
        private interface Blocking {
            void run() throws IOException;
        }

        private static void start(Blocking work, Exchange exchange) {
            Thread thread = new Thread(() -> {
                try {
                    work.run();
                } catch (IOException | RuntimeException e) {
                    exchange.fail(e.getMessage());
                }
            });
            thread.setDaemon(true);
            thread.start();
        }

        private static void read(FramedStream stream, Exchange exchange) throws IOException {
            BufferedSource source = Okio.buffer(stream.getSource());
            Buffer buffer = source.buffer();
            while (!source.exhausted()) {
                byte[] bytes = buffer.readByteArray();
                exchange.data(bytes, bytes.length);
            }
            exchange.end();
        }

        @Override void cancel(Exchange exchange) {
            ((FramedStream) exchange.handle).closeLater(ErrorCode.CANCEL);
        }

        @Override void goAway() throws IOException {
            connection.shutdown(ErrorCode.NO_ERROR);
        }

        @Override boolean refuses() {
            try {
                request("GET", "/small", false);
                return false;
            } catch (IOException e) {
                return true;
            }
        }
    }
}
