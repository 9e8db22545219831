package main

// What a Go program does to a broker with TLS, client certificates and rules.

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/Azure/go-amqp"
)

func securedFile(name string) string {
	return filepath.Join(os.Getenv("BROKER_SECURED_FOLDER"), name)
}

// encrypted is how a connection trusts the authority of that file, shows a certificate if one is
// named, and logs in.
func encrypted(ca, shown string, sasl amqp.SASLType) *amqp.ConnOptions {
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(must(os.ReadFile(securedFile(ca)))) {
		panic(ca)
	}
	config := &tls.Config{RootCAs: trusted, ServerName: "localhost"}
	if shown != "" {
		pair := must(tls.LoadX509KeyPair(securedFile(shown+".pem"), securedFile(shown+".key")))
		config.Certificates = []tls.Certificate{pair}
	}
	return &amqp.ConnOptions{TLSConfig: config, SASLType: sasl}
}

// secured is a connection with TLS to the broker that the variable names.
func (s *scene) secured(variable string, options *amqp.ConnOptions) *amqp.Session {
	connection := must(amqp.Dial(s, "amqps://"+s.host(variable), options))
	s.endings = append(s.endings, func() { _ = connection.Close() })
	return must(connection.NewSession(s, nil))
}

// refused ends the case unless a connection fails with an error that has one of the texts.
func (s *scene) refused(options *amqp.ConnOptions, texts ...string) {
	connection, err := amqp.Dial(s, "amqps://"+s.host("BROKER_SECURED_URL"), options)
	if err == nil {
		_ = connection.Close()
		panic("the connection was opened")
	}
	for _, text := range texts {
		if strings.Contains(err.Error(), text) {
			return
		}
	}
	panic(fmt.Sprintf("refused by another error: %v", err))
}

var shopping = amqp.SASLTypePlain("shop", "tulip")

var _ = shows("a password opens a connection with TLS", "SEC-01 SEC-02", func(s *scene) {
	session := s.secured("BROKER_SECURED_URL", encrypted("ca.pem", "", shopping))
	s.fill(session, "encrypted")
	receiver := must(session.NewReceiver(s, s.address, nil))
	message := must(receiver.Receive(s, nil))
	check(receiver.AcceptMessage(s, message))
	same(message.Value, "encrypted")
})

var _ = shows("a certificate logs in by EXTERNAL, with the rights of its user", "SEC-01 SEC-02 SEC-03", func(s *scene) {
	options := encrypted("ca.pem", "shop", amqp.SASLTypeExternal(""))
	session := s.secured("BROKER_SECURED_DEMANDING", options)
	s.fill(session, "by certificate")
	_, err := session.NewSender(s, "closed.orders", nil)
	same(condition(err), "amqp:unauthorized-access")
})

var _ = shows("a certificate that no user has is refused", "SEC-02", func(s *scene) {
	s.refused(encrypted("ca.pem", "stranger", amqp.SASLTypeExternal("")), "no supported auth mechanism")
})

var _ = shows("a wrong password is refused over TLS, too", "SEC-02", func(s *scene) {
	wrong := amqp.SASLTypePlain("mistyped", "wrong")
	s.refused(encrypted("ca.pem", "", wrong), "SASL PLAIN auth failed")
})

var _ = shows("a broker with a certificate of another authority is not spoken to", "SEC-01", func(s *scene) {
	s.refused(encrypted("other.pem", "", shopping), "certificate")
})
