#include "tls.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

SSL_CTX *tls_client(void) {
  signal(SIGPIPE, SIG_IGN); /* OpenSSL writes without MSG_NOSIGNAL */
  SSL_CTX *context = SSL_CTX_new(TLS_client_method());
  if (!context || !SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION)) {
    fprintf(stderr, "this OpenSSL has no TLS 1.3\n");
    exit(1);
  }
  SSL_CTX_set_verify(context, SSL_VERIFY_NONE, NULL);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_AUTO_RETRY);
  return context;
}
