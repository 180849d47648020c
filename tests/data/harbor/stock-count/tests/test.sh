#!/bin/bash
# The sum is what all lists make together, however it was found.
total=$(awk '{ sum += $2 } END { print sum }' /app/north.txt /app/south.txt)
if [ "$(cat /app/stock.txt)" = "stock $total" ]; then
    echo 1 > /logs/verifier/reward.txt
else
    echo "stock.txt does not say stock $total"
    echo 0 > /logs/verifier/reward.txt
fi
