#!/usr/bin/env bash
# A program without a model that books a slot with curl: program.sh BASE/HABIT
set -u
base=$1 habit=${1##*/}

give_up() {
  [ "$habit" = mute ] && exit 0
  echo "I could not book the slot: $1."
  exit 1
}

book() {
  curl -sS -f -H 'content-type: application/json' -d "$wanted" "$base/bookings" 2>/dev/null
}

slots=$(curl -sS -f "$base/slots" 2>/dev/null) || slots=$(curl -sS -f "$base/slots" 2>/dev/null) ||
  give_up "the slots cannot be read"
slot=$(jq -er '.slots[0].id' 2>/dev/null <<<"$slots") || give_up "the slots are no JSON"
wanted=$(jq -n --arg slot "$slot" '{slot: $slot}')
[ "$habit" = trusting ] && wanted=$(jq -c '{slot: .slots[0].id, price: .slots[0].price}' <<<"$slots")
if ! booking=$(book) || ! jq -e .id >/dev/null 2>&1 <<<"$booking"; then
  [ "$habit" = hasty ] || [ "$habit" = trusting ] || [ "$habit" = careful ] || give_up "no answer"
  if [ "$habit" = careful ]; then
    curl -sS -f "$base/bookings" 2>/dev/null | jq -e '.bookings[0]' >/dev/null ||
      give_up "the clinic reports an error"
  else
    booking=$(book) || give_up "the clinic reports an error"
  fi
fi
echo "Done: $slot is booked."
