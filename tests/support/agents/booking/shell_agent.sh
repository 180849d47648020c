#!/usr/bin/env bash
# An agent whose only tool is a shell: shell_agent.sh BASE
set -u
base=$1
messages='[{"role": "user", "content": "Book Ana the first free slot, with curl."}]'
tools='[{"type": "function", "function": {"name": "bash", "parameters": {}}}]'

while :; do
  body=$(jq -n --argjson messages "$messages" --argjson tools "$tools" \
    '{model: "clinic-1", messages: $messages, tools: $tools}')
  message=$(curl -sS -H 'content-type: application/json' -d "$body" "$base/v1/chat/completions" |
    jq -c '.choices[0].message')
  messages=$(jq -c --argjson message "$message" '. + [$message]' <<<"$messages")
  [ "$(jq -r 'has("tool_calls")' <<<"$message")" = true ] || break
  command=$(jq -r '.tool_calls[0].function.arguments | fromjson | .command' <<<"$message")
  id=$(jq -r '.tool_calls[0].id' <<<"$message")
  result=$(bash -c "$command" 2>&1)
  messages=$(jq -c --arg id "$id" --arg result "$result" \
    '. + [{role: "tool", tool_call_id: $id, content: $result}]' <<<"$messages")
done
jq -r .content <<<"$message"
