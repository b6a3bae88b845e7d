# An image with the runner alone: docs/container.md says how to use it.
#
#     docker build -t runner .

# The engine that TypeScript needs comes from npm.
FROM node:22-bookworm AS engine
WORKDIR /src
COPY tools tools
COPY develop/toolchain/typescript/engine.go develop/toolchain/typescript/engine.go
COPY develop/toolchain/typescript/engine develop/toolchain/typescript/engine
RUN tools/fetch-engine.sh

FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY . .
COPY --from=engine /src/develop/toolchain/typescript/engine/quickjs.wasm develop/toolchain/typescript/engine/
RUN CGO_ENABLED=0 tools/go.sh build -trimpath -pgo=cmd/runner/release.pgo -ldflags='-s -w' -o /out/bin/runner ./cmd/runner
RUN mkdir -p /out/own/data /out/own/tmp && chmod 0700 /out/own/data

FROM scratch
COPY --from=build /out/bin /usr/local/bin
# For handlers that call fetch, and for the keys of an identity provider.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build --chown=65532:65532 /out/own /
ENV PATH=/usr/local/bin RUNNER_FRONT_LISTEN=0.0.0.0:8080 RUNNER_STORE_DIR=/data
USER 65532:65532
WORKDIR /app
VOLUME /data
EXPOSE 8080
HEALTHCHECK CMD ["runner", "status"]
ENTRYPOINT ["runner"]
# With --data it waits for a release if there is no app.
CMD ["serve", "--data", "/data"]
