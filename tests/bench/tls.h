/* TLS of the clients that do without proton. */
#ifndef BENCH_TLS_H
#define BENCH_TLS_H

#include <openssl/ssl.h>

/* A client's context of TLS 1.3 that takes any certificate, as speed is measured here between two programs, and resumes
 * no session. Exits with 1 where there is none. */
SSL_CTX *tls_client(void);

#endif
