"""Errors of Anthropic messages through AWS Bedrock: Bedrock's errors, Anthropic's texts."""

from traces.dialects.errors import anthropic_messages_errors, bedrock_errors

ID_PREFIX = anthropic_messages_errors.ID_PREFIX
make_model_error_body = bedrock_errors.make_model_error_body
make_stream_error = bedrock_errors.make_stream_error
find_text_spans = anthropic_messages_errors.find_text_spans
empty_answer = anthropic_messages_errors.empty_answer
