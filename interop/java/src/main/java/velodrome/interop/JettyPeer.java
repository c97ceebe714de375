package velodrome.interop;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.servlet.ServletOutputStream;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;
import org.eclipse.jetty.io.EndPoint;
import org.eclipse.jetty.io.ssl.SslClientConnectionFactory;
import org.eclipse.jetty.server.ConnectionFactory;
import org.eclipse.jetty.server.Connector;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.SslConnectionFactory;
import org.eclipse.jetty.server.handler.AbstractHandler;
import org.eclipse.jetty.spdy.api.BytesDataInfo;
import org.eclipse.jetty.spdy.api.DataInfo;
import org.eclipse.jetty.spdy.api.GoAwayInfo;
import org.eclipse.jetty.spdy.api.GoAwayResultInfo;
import org.eclipse.jetty.spdy.api.HeadersInfo;
import org.eclipse.jetty.spdy.api.PushInfo;
import org.eclipse.jetty.spdy.api.ReplyInfo;
import org.eclipse.jetty.spdy.api.RstInfo;
import org.eclipse.jetty.spdy.api.Session;
import org.eclipse.jetty.spdy.api.SessionFrameListener;
import org.eclipse.jetty.spdy.api.SettingsInfo;
import org.eclipse.jetty.spdy.api.Stream;
import org.eclipse.jetty.spdy.api.StreamFrameListener;
import org.eclipse.jetty.spdy.api.StreamStatus;
import org.eclipse.jetty.spdy.api.SynInfo;
import org.eclipse.jetty.spdy.api.server.ServerSessionFrameListener;
import org.eclipse.jetty.spdy.client.SPDYClient;
import org.eclipse.jetty.spdy.client.SPDYClientConnectionFactory;
import org.eclipse.jetty.spdy.http.HTTPSPDYHeader;
import org.eclipse.jetty.spdy.server.http.HTTPSPDYServerConnectionFactory;
import org.eclipse.jetty.spdy.server.http.PushStrategy;
import org.eclipse.jetty.util.Callback;
import org.eclipse.jetty.util.Fields;
import org.eclipse.jetty.util.log.Log;
import org.eclipse.jetty.util.log.StdErrLog;
import org.eclipse.jetty.util.ssl.SslContextFactory;

/** Jetty 9.2: its HTTP server over SPDY, its push strategy, and its SPDY client. */
public final class JettyPeer {
    private JettyPeer() {}

    public static void main(String[] arguments) throws Exception {
        Options options = Options.parse(arguments, Set.of("2", "3"));
        StdErrLog log = new StdErrLog();
        log.setLevel(StdErrLog.LEVEL_WARN);
        Log.setLog(log);
        if (options.verb.equals("serve")) serve(options);
        else Client.fetch(options.scenario, () -> connect(options));
    }

    private static short version(Options options) {
        return Short.parseShort(options.version);
    }

    private static String header(Fields headers, HTTPSPDYHeader name, short version) {
        Fields.Field field = headers.get(name.name(version));
        return field == null ? null : field.getValue();
    }

    /**
     * The JDK's ALPN under Jetty, whose own needs classes on the boot path that no JDK after 8 takes. TLS 1.2, as Jetty 9.2
     * is older than 1.3, and now and then waits for ever over it.
     */
    private static SslContextFactory secured(SSLContext context, String protocol) {
        SslContextFactory factory = new SslContextFactory() {
            @Override public void customize(SSLEngine engine) {
                super.customize(engine);
                engine.setSSLParameters(Tls.alpn(engine.getSSLParameters(), protocol));
            }
        };
        factory.setSslContext(context);
        factory.setIncludeProtocols("TLSv1.2");
        return factory;
    }

    private static void serve(Options options) throws Exception {
        Server server = new Server();
        HttpConfiguration http = new HttpConfiguration();
        http.setSendServerVersion(false);
        ConnectionFactory spdy = new SpdyFactory(version(options), http);
        ServerConnector connector = options.tls
            ? new ServerConnector(server,
                new SslConnectionFactory(secured(Tls.server(options.cert, options.key), options.protocol()), spdy.getProtocol()),
                spdy)
            : new ServerConnector(server, spdy);
        connector.setHost("127.0.0.1");
        server.addConnector(connector);
        server.setHandler(new Resources());
        server.start();
        Contract.announce(connector.getLocalPort());
    }

    /** What Jetty's HTTP answers. */
    private static final class Resources extends AbstractHandler {
        @Override
        public void handle(String target, Request base, HttpServletRequest request, HttpServletResponse response)
            throws IOException {
            base.setHandled(true);
            byte[] received = request.getInputStream().readAllBytes();
            ServletOutputStream output = response.getOutputStream();
            if (target.equals("/endless")) {
                // Parts as large as these are written at once; a flush behind them, with nothing to flush, throws.
                for (int at = 0; at < Contract.ENDLESS_MAX; at += Contract.STEP) {
                    output.write(Contract.pattern(at, Contract.STEP));
                }
                return;
            }
            byte[] body = Contract.resource(target, received);
            if (body == null) {
                response.setStatus(404);
                return;
            }
            response.setContentLength(body.length);
            output.write(body);
        }
    }

    /** HTTP over SPDY, but for what HTTP has no word for: GOAWAY goes out, a reset comes in. */
    private static final class SpdyFactory extends HTTPSPDYServerConnectionFactory {
        SpdyFactory(short version, HttpConfiguration http) {
            super(version, http, new PushStrategy() {
                @Override public Set<String> apply(Stream stream, Fields request, Fields response) {
                    String path = header(request, HTTPSPDYHeader.URI, version);
                    return path.endsWith("/push") ? Set.of("/pushed") : Set.of();
                }
            });
        }

        @Override
        protected ServerSessionFrameListener provideServerSessionFrameListener(Connector connector, EndPoint endPoint) {
            return new Intercept(super.provideServerSessionFrameListener(connector, endPoint));
        }
    }

    private static final class Intercept extends ServerSessionFrameListener.Adapter {
        private static final ScheduledExecutorService CLOCK = Executors.newSingleThreadScheduledExecutor();
        private final ServerSessionFrameListener http;
        private volatile int endless = -1;

        Intercept(ServerSessionFrameListener http) {
            this.http = http;
        }

        @Override public StreamFrameListener onSyn(Stream stream, SynInfo syn) {
            short version = stream.getSession().getVersion();
            String path = header(syn.getHeaders(), HTTPSPDYHeader.URI, version);
            if ("/goaway".equals(path)) {
                goAway(stream, version);
                return null;
            }
            if ("/endless".equals(path)) endless = stream.getId();
            return http.onSyn(stream, syn);
        }

        @Override public void onRst(Session session, RstInfo reset) {
            http.onRst(session, reset);
            if (reset.getStreamId() != endless) return;
            endless = -1;
            Contract.cancelled();
        }

        @Override public void onFailure(Session session, Throwable failure) {
            http.onFailure(session, failure);
        }

        private static void goAway(Stream stream, short version) {
            stream.getSession().goAway(new GoAwayInfo(), Callback.Adapter.INSTANCE);
            Fields headers = new Fields();
            headers.put(HTTPSPDYHeader.STATUS.name(version), "200 OK");
            headers.put(HTTPSPDYHeader.VERSION.name(version), "HTTP/1.1");
            stream.reply(new ReplyInfo(headers, false), Callback.Adapter.INSTANCE);
            slowly(stream, 0);
        }

        private static void slowly(Stream stream, int at) {
            int next = at + Contract.STEP;
            boolean last = next == Contract.LARGE;
            stream.data(new BytesDataInfo(Contract.pattern(at, Contract.STEP), last), Callback.Adapter.INSTANCE);
            if (!last) CLOCK.schedule(() -> slowly(stream, next), Contract.STEP_MS, TimeUnit.MILLISECONDS);
        }
    }

    private static Client connect(Options options) throws Exception {
        SslContextFactory tls = options.tls ? secured(Tls.client(), options.protocol()) : null;
        SPDYClient.Factory factory = new SPDYClient.Factory(tls);
        factory.start();
        SPDYClient spdy = factory.newSPDYClient(version(options));
        if (options.tls) {
            spdy.setClientConnectionFactory(new SslClientConnectionFactory(tls, factory.getByteBufferPool(),
                factory.getExecutor(), new SPDYClientConnectionFactory()));
        }
        JettyClient client = new JettyClient();
        client.session = spdy.connect(new InetSocketAddress("127.0.0.1", options.port), client.listener);
        return client;
    }

    private static final class JettyClient extends Client {
        Session session;
        private final Map<Integer, Exchange> exchanges = new ConcurrentHashMap<>();
        private volatile boolean goneAway;
        private final CountDownLatch settled = new CountDownLatch(1);

        final SessionFrameListener listener = new SessionFrameListener.Adapter() {
            @Override public void onGoAway(Session session, GoAwayResultInfo info) {
                goneAway = true;
            }

            @Override public void onSettings(Session session, SettingsInfo info) {
                settled.countDown();
            }

            @Override public void onRst(Session session, RstInfo reset) {
                Exchange exchange = exchanges.get(reset.getStreamId());
                if (exchange != null) exchange.fail("reset with " + reset.getStreamStatus());
            }

            @Override public void onFailure(Session session, Throwable failure) {
                exchanges.values().forEach(exchange -> exchange.fail(failure.toString()));
            }
        };

        @Override void open(Exchange exchange) throws Exception {
            short version = session.getVersion();
            Fields headers = new Fields();
            headers.put(HTTPSPDYHeader.METHOD.name(version), exchange.method);
            headers.put(HTTPSPDYHeader.URI.name(version), exchange.path);
            headers.put(HTTPSPDYHeader.VERSION.name(version), "HTTP/1.1");
            headers.put(HTTPSPDYHeader.SCHEME.name(version), "http");
            headers.put(HTTPSPDYHeader.HOST.name(version), "127.0.0.1");
            Stream stream = session.syn(new SynInfo(headers, exchange.body == null), new Answer(exchange));
            exchanges.put(stream.getId(), exchange);
            if (exchange.body == null) return;
            // A stream that has used its window up stays stalled when SETTINGS widens it (StandardSession.onSettings does not
            // flush), and a server that waits for the new window to shrink sends no WINDOW_UPDATE.
            settled.await(1, TimeUnit.SECONDS);
            stream.data(new BytesDataInfo(exchange.body, true), new Callback.Adapter() {
                @Override public void failed(Throwable failure) {
                    exchange.fail("not sent: " + failure);
                }
            });
        }

        private final class Answer extends StreamFrameListener.Adapter {
            private final Exchange exchange;

            Answer(Exchange exchange) {
                this.exchange = exchange;
            }

            @Override public void onReply(Stream stream, ReplyInfo reply) {
                head(stream, reply.getHeaders(), reply.isClose());
            }

            @Override public void onHeaders(Stream stream, HeadersInfo headers) {
                head(stream, headers.getHeaders(), headers.isClose());
            }

            private void head(Stream stream, Fields headers, boolean last) {
                exchange.handle = stream;
                exchange.head(header(headers, HTTPSPDYHeader.STATUS, stream.getSession().getVersion()));
                if (last) exchange.end();
            }

            @Override public StreamFrameListener onPush(Stream stream, PushInfo push) {
                short version = stream.getSession().getVersion();
                Exchange pushed = push(header(push.getHeaders(), HTTPSPDYHeader.URI, version));
                if (pushed == null) return null;
                String status = header(push.getHeaders(), HTTPSPDYHeader.STATUS, version);
                if (status != null) pushed.head(status);
                return new Answer(pushed);
            }

            @Override public void onData(Stream stream, DataInfo data) {
                // Consuming is what gives the window back.
                byte[] bytes = data.asBytes(true);
                exchange.data(bytes, bytes.length);
                if (data.isClose()) exchange.end();
            }

            @Override public void onFailure(Stream stream, Throwable failure) {
                exchange.fail(failure.toString());
            }
        }

        @Override void cancel(Exchange exchange) {
            session.rst(new RstInfo(((Stream) exchange.handle).getId(), StreamStatus.CANCEL_STREAM), Callback.Adapter.INSTANCE);
        }

        @Override void goAway() throws Cannot {
            // StandardSession.goAway: frames that come later are skipped, and the connection is closed once it is sent.
            throw new Cannot("Jetty closes the connection with its GOAWAY");
        }

        @Override boolean refuses() {
            return goneAway;
        }

        @Override String note() {
            return "further streams not asked for (Jetty leaves that to its user)";
        }
    }
}
