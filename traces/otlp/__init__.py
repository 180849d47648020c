"""OTLP, the protocol of OpenTelemetry's exporters and collectors, for spans and log records.

messages   the fields of its messages, by number
protobuf   these messages between protobuf and the values of OTLP's JSON
"""
