# mypy: ignore-errors
"""An agent in the practice world, traced by one of three instrumentations and exported by
OpenTelemetry's SDK. It prints its conversation.

python traced_agent.py openllmetry|openinference|otel http|grpc MODEL PROMPT SECRET
"""

import json
import os
import sys

from opentelemetry import _logs, trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

INSTRUMENTATION, TRANSPORT, *ARGUMENTS = sys.argv[1:]

if TRANSPORT == "grpc":
    from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
else:
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
match INSTRUMENTATION:
    case "openllmetry":
        from opentelemetry.instrumentation.openai import OpenAIInstrumentor
    case "openinference":
        from openinference.instrumentation.openai import OpenAIInstrumentor
    case _:
        from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor

spans, records = TracerProvider(), LoggerProvider()
spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
records.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
trace.set_tracer_provider(spans)
_logs.set_logger_provider(records)
OpenAIInstrumentor().instrument()

import httpx  # noqa: E402
from openai import OpenAI  # noqa: E402

TOOLS = ("search_customer", "list_orders", "get_order", "get_refund", "convert_currency")
TOOLS += ("add_note", "time_between", "issue_refund", "add_time", "update_order")
OFFERED = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
    for name in TOOLS
]


def work(model: str, prompt: str, secret: str) -> None:
    """Work on a task until the model calls no tool."""
    client, shop = OpenAI(), httpx.Client(base_url=os.environ["TOOLS_URL"])
    messages = [
        {"role": "system", "content": f"You work for a shop. Its key is {secret}"},
        {"role": "user", "content": prompt},
    ]
    for _ in range(40):
        answer = client.chat.completions.create(model=model, messages=messages, tools=OFFERED)
        message = answer.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls or ():
            url, content = f"/tools/{call.function.name}", call.function.arguments
            result = shop.post(url, content=content, headers={"content-type": "application/json"})
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result.text})
        if not message.tool_calls:
            break
    print(json.dumps(messages))


with trace.get_tracer("practice").start_as_current_span("run"):
    work(*ARGUMENTS)
spans.shutdown()
records.shutdown()
