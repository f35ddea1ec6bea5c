# Node runs the agent's TypeScript as it is; only the dashboard's page is built. test/chart/image.test.ts does the same
# steps without Docker.
# The first two stages make files that are the same for every architecture.
FROM --platform=$BUILDPLATFORM node:24.19.0-bookworm-slim@sha256:a9f5f7c91a432850b2a8a7797adf5eadb6c733ceed61167806cee7ea7fbc29df AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund

FROM --platform=$BUILDPLATFORM node:24.19.0-bookworm-slim@sha256:a9f5f7c91a432850b2a8a7797adf5eadb6c733ceed61167806cee7ea7fbc29df AS page
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY agent agent
COPY scripts scripts
RUN node scripts/dashboard.ts

FROM node:24.19.0-bookworm-slim@sha256:a9f5f7c91a432850b2a8a7797adf5eadb6c733ceed61167806cee7ea7fbc29df
LABEL org.opencontainers.image.title=apisix-drain org.opencontainers.image.licenses=Apache-2.0
ENV NODE_ENV=production
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY --from=page /app/dist dist
COPY package.json LICENSE ./
COPY agent agent
# Owned by root and run by nobody: the root file system can be read-only, the agent writes to no file.
USER 65532:65532
EXPOSE 8080 8081
# What is read of a pod and thrown away again is most of what is allocated: a small young generation is 25 MB less with 10,000 pods.
ENTRYPOINT ["node", "--max-semi-space-size=8", "agent/main.ts"]
