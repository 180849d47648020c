"""OpenTelemetry spans in any published layout, and the conversations in them.

span_files     spans of a file or document, in one form
span_messages  messages in the attributes and events of a model request
tool_spans     calls and results in the spans of tools
trace_runs     a trace as a conversation
"""
