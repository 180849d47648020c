"""Collection of spans from OpenTelemetry's exporters, which become runs of the store.

otlp_request  the body of a request, and the answer to it
span_spool    files of spans, one for each trace, redacted before the first byte is written
collector     what to keep of a request, and when traces are imported
http_server   OTLP over HTTP
grpc_server   OTLP over gRPC, with grpcio
"""
