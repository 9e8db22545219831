# jms-broker as a service: compiled, run by a user without rights, its data in /var/lib/jms-broker.
# BASE: a Debian or what is made from one, with python3 (3.11 or newer) and its venv.
ARG BASE=python:3.13-slim-bookworm

FROM ${BASE} AS build
SHELL ["/bin/sh", "-euc"]
WORKDIR /build

# The python images bring the headers; for Debian's own python3 they are a package. No versions
# are named: the mirrors drop each one with the next security update. With libssl-dev, which it
# looks for by pkg-config, the client library speaks TLS.
# hadolint ignore=DL3008
RUN apt-get update; \
    apt-get install --yes --no-install-recommends gcc libc6-dev libssl-dev pkg-config; \
    python3 -c 'import os, sysconfig; os.stat(sysconfig.get_path("include") + "/Python.h")' \
        2>/dev/null || apt-get install --yes --no-install-recommends python3-dev; \
    rm -rf /var/lib/apt/lists/*

# Two environments: what builds, and what goes into the image, which has no pip. The client library
# comes as C source. The secret is for those whose pip needs settings:
# docker build --secret id=pip,src=pip.conf
# ARROW=yes adds pyarrow, for Arrow streams over HTTP: 170 MB.
ARG ARROW=no
COPY requirements-*.txt ./
RUN --mount=type=secret,id=pip,target=/etc/pip.conf \
    case "$ARROW" in \
        yes) set -- -r requirements-arrow.txt ;; \
        no) set -- ;; \
        *) echo "ARROW is yes or no, not $ARROW" >&2; exit 2 ;; \
    esac; \
    python3 -m venv tools; \
    python3 -m venv --without-pip /opt/jms-broker; \
    tools/bin/pip install --no-cache-dir --require-hashes -r requirements-build.txt; \
    tools/bin/pip wheel --no-cache-dir --require-hashes --no-deps --no-build-isolation \
        -w wheels -r requirements-http.txt \
        -r requirements-client.txt -r requirements-postgresql.txt -r requirements-oauth.txt \
        -r requirements-otel.txt "$@"; \
    tools/bin/pip --python /opt/jms-broker/bin/python install --no-deps --no-index wheels/*.whl

# What .dockerignore lets in, and no more.
COPY . tree/
RUN HATCH_BUILD_HOOKS_ENABLE=true \
        tools/bin/pip wheel --no-deps --no-build-isolation -w wheel ./tree; \
    tools/bin/pip --python /opt/jms-broker/bin/python install --no-deps --no-index wheel/*.whl; \
    /opt/jms-broker/bin/python -c 'from broker.amqp import connection as module; \
        assert module.__file__.endswith(".so"), module.__file__; \
        import asyncpg, proton; assert proton.SSL.present()'

FROM ${BASE}
ARG BASE
ARG VERSION=0.1.0
ARG REVISION=
ARG CREATED=
LABEL org.opencontainers.image.title="jms-broker" \
      org.opencontainers.image.description="A JMS message broker that speaks AMQP 1.0" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.created="$CREATED" \
      org.opencontainers.image.base.name="$BASE"
COPY --from=build /opt/jms-broker /opt/jms-broker
RUN groupadd --gid 10001 jms-broker \
    && useradd --uid 10001 --gid jms-broker --no-create-home --shell /usr/sbin/nologin \
        --home-dir /var/lib/jms-broker jms-broker \
    && install --directory --owner jms-broker --group jms-broker --mode 0750 /var/lib/jms-broker
ENV PATH=/opt/jms-broker/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    JMS_BROKER_BIND=0.0.0.0 \
    JMS_BROKER_USERS_FILE=/var/lib/jms-broker/users
WORKDIR /var/lib/jms-broker
VOLUME /var/lib/jms-broker
# amqps, amqp, ws, wss and HTTP; all but amqp only if the settings have them.
EXPOSE 5671 5672 5673 5674 8161
# By number, so that an orchestrator sees that it is not root.
USER 10001:10001
HEALTHCHECK --interval=30s --timeout=10s --start-period=10s --retries=3 \
    CMD ["jms-broker", "healthcheck"]
ENTRYPOINT ["jms-broker"]
CMD ["serve"]
