package interop.secure;

import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** The program of docs/operations/secure-broker.md, which tests/interop/test_secure_broker.py runs. */
@DisplayName("The client of docs/operations/secure-broker.md")
class SecurePhases {
    @Test
    @DisplayName("it sends over mutual TLS")
    void send() {
        OrderSender.send(System.getProperty("broker.url"), System.getProperty("broker.secured.folder"), "a map");
    }
}
