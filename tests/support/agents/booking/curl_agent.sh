#!/usr/bin/env bash
# An agent of bash, curl and jq: curl_agent.sh BASE
set -u
base=$1
messages='[{"role": "user", "content": "Book Ana the first free slot."}]'
tools='[{"type": "function", "function": {"name": "book_slot", "parameters": {}}}]'

call_tool() {
  case $1 in
    book_slot) curl -sS -f -H 'content-type: application/json' -d "$2" "$base/bookings" 2>&1 ;;
    get_slots) curl -sS -f "$base/slots" 2>&1 ;;
    *) curl -sS -f "$base/bookings" 2>&1 ;;
  esac
}

while :; do
  body=$(jq -n --argjson messages "$messages" --argjson tools "$tools" \
    '{model: "clinic-1", messages: $messages, tools: $tools}')
  message=$(curl -sS -H 'content-type: application/json' -d "$body" "$base/v1/chat/completions" |
    jq -c '.choices[0].message')
  messages=$(jq -c --argjson message "$message" '. + [$message]' <<<"$messages")
  [ "$(jq -r 'has("tool_calls")' <<<"$message")" = true ] || break
  name=$(jq -r '.tool_calls[0].function.name' <<<"$message")
  arguments=$(jq -r '.tool_calls[0].function.arguments' <<<"$message")
  id=$(jq -r '.tool_calls[0].id' <<<"$message")
  result=$(call_tool "$name" "$arguments")
  messages=$(jq -c --arg id "$id" --arg result "$result" \
    '. + [{role: "tool", tool_call_id: $id, content: $result}]' <<<"$messages")
done
jq -r .content <<<"$message"
