# syntax=docker/dockerfile:1
# The image of stumble: docker build -t stumble . && docker run --rm stumble --version
#
# No step depends on the architecture: docker buildx build --platform linux/amd64,linux/arm64 .
# BASE is any image with Python 3.13; PIP_ARGS adds options of pip, as --index-url or --no-index.
ARG BASE=python:3.13-slim
FROM ${BASE} AS build
ARG PIP_ARGS=""
WORKDIR /build
COPY requirements.lock pyproject.toml README.md LICENSE ./
RUN python3 -m venv /opt/stumble \
 && /opt/stumble/bin/pip install --no-cache-dir ${PIP_ARGS} -r requirements.lock
COPY . .
RUN /opt/stumble/bin/pip install --no-cache-dir --no-deps ${PIP_ARGS} . \
 && python3 -m venv /sbom \
 && /sbom/bin/pip install --no-cache-dir ${PIP_ARGS} cyclonedx-bom \
 && /sbom/bin/cyclonedx-py environment /opt/stumble/bin/python3 \
    --output-format JSON --output-file /opt/stumble/sbom.cdx.json

FROM ${BASE}
LABEL org.opencontainers.image.title="stumble" \
      org.opencontainers.image.licenses="MIT"
COPY --from=build /opt/stumble /opt/stumble
ENV PATH=/opt/stumble/bin:$PATH \
    HOME=/data/home \
    STUMBLE_STORE=/data/store
RUN mkdir -p /data/home && chown -R 10001:10001 /data
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8080 9464
ENTRYPOINT ["stumble"]
CMD ["--help"]
