package velodrome.interop;

import java.io.ByteArrayInputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.TrustManager;
import javax.net.ssl.X509TrustManager;

/** The JDK's TLS with ALPN, the same for all peers: servers from PEM files, clients that believe anyone. */
final class Tls {
    private Tls() {}

    static SSLContext server(String cert, String key) throws Exception {
        Certificate certificate = CertificateFactory.getInstance("X.509")
            .generateCertificate(new ByteArrayInputStream(Files.readAllBytes(Path.of(cert))));
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        store.setKeyEntry("peer", privateKey(Files.readString(Path.of(key))), new char[0], new Certificate[] {certificate});
        KeyManagerFactory managers = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        managers.init(store, new char[0]);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(managers.getKeyManagers(), null, null);
        return context;
    }

    static SSLContext client() throws GeneralSecurityException {
        TrustManager anyone = new X509TrustManager() {
            @Override public void checkClientTrusted(X509Certificate[] chain, String authType) {}

            @Override public void checkServerTrusted(X509Certificate[] chain, String authType) {}

            @Override public X509Certificate[] getAcceptedIssuers() {
                return new X509Certificate[0];
            }
        };
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, new TrustManager[] {anyone}, null);
        return context;
    }

    /** An engine that offers, or accepts, `protocol` alone. */
    static SSLEngine engine(SSLContext context, boolean client, String protocol) {
        SSLEngine engine = context.createSSLEngine();
        engine.setUseClientMode(client);
        engine.setSSLParameters(alpn(engine.getSSLParameters(), protocol));
        return engine;
    }

    static SSLParameters alpn(SSLParameters parameters, String protocol) {
        parameters.setApplicationProtocols(new String[] {protocol});
        return parameters;
    }

    /** Faults a connection on which ALPN gave something else. */
    static void require(String got, String protocol) {
        if (!protocol.equals(got)) throw new IllegalStateException("ALPN gave '" + got + "', not " + protocol);
    }

    private static PrivateKey privateKey(String pem) throws GeneralSecurityException {
        String body = pem.replaceAll("-----[A-Z ]+-----", "").replaceAll("\\s", "");
        PKCS8EncodedKeySpec spec = new PKCS8EncodedKeySpec(Base64.getDecoder().decode(body));
        GeneralSecurityException last = null;
        for (String algorithm : new String[] {"EC", "RSA", "EdDSA"}) {
            try {
                return KeyFactory.getInstance(algorithm).generatePrivate(spec);
            } catch (GeneralSecurityException e) {
                last = e;
            }
        }
        throw last;
    }
}
