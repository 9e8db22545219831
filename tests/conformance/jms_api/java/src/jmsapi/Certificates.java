package jmsapi;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collection;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** The TLS of connections, from the PEM files of Settings. */
final class Certificates {
    private static final char[] NO_PASSWORD = new char[0];
    private static final int SEQUENCE = 0x30;
    private static final int OCTET_STRING = 4;
    private static final Pattern KEY_BLOCK =
            Pattern.compile("-----BEGIN (|RSA |EC )PRIVATE KEY-----([^-]*)-----END");

    private Certificates() {
    }

    /** Return a context that trusts the authorities of CA, or Java's, and shows the certificate of CERT, or none. */
    static SSLContext context() {
        try {
            TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            trust.init(Settings.CA.isEmpty() ? null : authorities());
            KeyManagerFactory keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
            keys.init(Settings.CERT.isEmpty() ? null : own(), NO_PASSWORD);
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(keys.getKeyManagers(), trust.getTrustManagers(), null);
            return context;
        } catch (GeneralSecurityException | IOException unusable) {
            throw new IllegalArgumentException("the files of TLS cannot be used: " + unusable.getMessage(), unusable);
        }
    }

    private static KeyStore authorities() throws GeneralSecurityException, IOException {
        KeyStore store = emptyStore();
        int place = 0;
        for (Certificate each : certificates(Settings.CA)) {
            store.setCertificateEntry("authority-" + place++, each);
        }
        return store;
    }

    private static KeyStore own() throws GeneralSecurityException, IOException {
        KeyStore store = emptyStore();
        Certificate[] chain = certificates(Settings.CERT).toArray(new Certificate[0]);
        store.setKeyEntry("own", key(chain[0].getPublicKey()), NO_PASSWORD, chain);
        return store;
    }

    private static KeyStore emptyStore() throws GeneralSecurityException, IOException {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        return store;
    }

    private static Collection<? extends Certificate> certificates(String file)
            throws GeneralSecurityException, IOException {
        try (InputStream pem = Files.newInputStream(Path.of(file))) {
            return CertificateFactory.getInstance("X.509").generateCertificates(pem);
        }
    }

    /**
     * Return the key of KEY, which has no password: of PKCS#8, or of the older forms RSA and EC. Those lack the name of
     * the algorithm, which the certificate's public key has in the same bytes.
     */
    private static PrivateKey key(PublicKey certified) throws GeneralSecurityException, IOException {
        Matcher found = KEY_BLOCK.matcher(Files.readString(Path.of(Settings.KEY), StandardCharsets.UTF_8));
        if (!found.find()) {
            throw new GeneralSecurityException(Settings.KEY + " has no private key without a password");
        }
        byte[] encoded = Base64.getMimeDecoder().decode(found.group(2));
        if (!found.group(1).isEmpty()) {
            byte[] version = {2, 1, 0};
            encoded = der(SEQUENCE, joined(version, algorithm(certified.getEncoded()), der(OCTET_STRING, encoded)));
        }
        return KeyFactory.getInstance(certified.getAlgorithm()).generatePrivate(new PKCS8EncodedKeySpec(encoded));
    }

    /** Return the algorithm of a public key: the first sequence within that of the key. */
    private static byte[] algorithm(byte[] publicKey) {
        int start = 2 + (publicKey[1] < 0 ? publicKey[1] & 0x7f : 0);
        // it is shorter than 128 bytes, so its length is one byte
        return Arrays.copyOfRange(publicKey, start, start + 2 + publicKey[start + 1]);
    }

    /** Return a value of DER: its kind, its length, its content. */
    private static byte[] der(int kind, byte[] content) {
        int length = content.length;
        byte[] head = length < 0x80 ? new byte[] {(byte) kind, (byte) length}
                : length < 0x100 ? new byte[] {(byte) kind, (byte) 0x81, (byte) length}
                : new byte[] {(byte) kind, (byte) 0x82, (byte) (length >> 8), (byte) length};
        return joined(head, content);
    }

    private static byte[] joined(byte[]... parts) {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        for (byte[] part : parts) {
            all.writeBytes(part);
        }
        return all.toByteArray();
    }
}
